"""CAPACITY, the numbers: seconds become steps, steps become a result."""
