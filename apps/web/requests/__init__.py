"""Request lines: search, one request, and files to take away."""
