"""CAPACITY, what results are used for: limits, sizing, and when to measure again."""
