"""Schema changes of this app, in order."""
