"""SHOW to visitors: status pages, as everybody sees them, and where people write for them."""
