"""DEFINE: what makes an alert, and whom it is told, on what page visitors read of it."""
