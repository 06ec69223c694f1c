"""PUSH on the node: names of servers, resolved and checked."""
