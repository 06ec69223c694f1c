"""SHOW to people: the pages."""
