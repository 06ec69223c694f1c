"""Replay: the old configuration and ours side by side on real HAProxy, with stub servers behind both."""
