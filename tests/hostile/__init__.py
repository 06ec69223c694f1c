"""Hostile input: a corpus of values, every field that can be written, every way in; nothing of it gets through."""
