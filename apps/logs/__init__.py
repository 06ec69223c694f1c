"""OBSERVE: one line per request, collected from nodes, kept by account, and searched."""
