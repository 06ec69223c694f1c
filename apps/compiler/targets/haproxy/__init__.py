"""COMPILE for HAProxy: a model of lines, the renderers that fill it, and the receipt that reads it back."""
