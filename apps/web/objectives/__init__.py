"""How objectives are shown, of pools and of routes."""
