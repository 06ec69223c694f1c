"""What an object did in a stretch of time, drawn, and what happened meanwhile."""
