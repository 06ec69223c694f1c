"""DEFINE, inside a write: how each kind is stored, one module per group of kinds."""
