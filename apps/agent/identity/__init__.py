"""Who this node is: its key, which never leaves it, its certificate, and the authorities that it believes."""
