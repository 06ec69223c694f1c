"""COMPILE for HAProxy: what a listener is told beyond its port."""
