"""SHOW to people: the first pages, incidents and what the command palette finds."""
