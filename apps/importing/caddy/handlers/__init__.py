"""What each handler does with a request."""
