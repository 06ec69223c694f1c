"""SHOW to people: signing in, one's own account and sessions."""
