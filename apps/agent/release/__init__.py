"""PUSH on the node: files, the switch, its confirmation, and what the node remembers."""
