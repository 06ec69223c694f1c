"""PUSH + OBSERVE on the node: the HAProxy process, its sockets and counters."""
