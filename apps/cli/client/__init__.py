"""The command `spillway`: a thin client of the API v1 on the standard library alone, installed without the server."""

__version__ = "0.1.0"
