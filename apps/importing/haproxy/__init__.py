"""Reads haproxy.cfg of 1.4 to 3.2 and the files that come with it."""
