"""Requests that may be sent again: one intent, however often its request arrives."""
