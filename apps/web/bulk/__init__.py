"""SHOW to people: what is done to the selected rows of a list."""
