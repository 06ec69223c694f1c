"""Clients that limits banned by themselves: read from nodes, shown to whose routes they are, and lifted."""
