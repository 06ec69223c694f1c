"""PUSH + OBSERVE on the node: the small program that owns one HAProxy, of the standard library alone."""

VERSION = "0.1.0"
