"""DEFINE → COMPILE, the only bridges: rows become the frozen input of compilers and planners."""
