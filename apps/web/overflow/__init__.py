"""SHOW to people: overflow as it is, was and would be."""
