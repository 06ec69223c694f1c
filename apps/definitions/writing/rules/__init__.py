"""DEFINE, inside a write: the rules that hold for several kinds."""
