"""How Spillway itself is run: the demo of `make up`, the console's own front, units for systemd, example documents."""
