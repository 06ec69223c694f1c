"""Pages of changes: what one write did, and taking it back."""
