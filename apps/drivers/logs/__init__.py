"""OBSERVE: where the lines of requests are kept and searched."""
