"""DEFINE: what makes an alert, and whom it is told."""
