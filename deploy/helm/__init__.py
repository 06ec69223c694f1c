"""The chart for Kubernetes, and the command that writes the schema of its values."""
