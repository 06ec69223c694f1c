"""The container image, and the command that stages and builds it."""
