"""COMPILE for HAProxy: a model of lines, the renderers that fill it, and config verification that reads it back."""
