"""COMPILE for HAProxy: limits, ceilings, and overflow between regions."""
