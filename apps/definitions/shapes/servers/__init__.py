"""DEFINE, the shapes of what a pool says of its servers: each an optional object of a pool."""
