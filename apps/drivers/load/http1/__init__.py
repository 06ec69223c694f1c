"""LOAD, the engine of HTTP/1.1: what makes the requests and counts the answers; start reading at `engine.py`."""
