"""SHOW to people: policies, who uses them, and their form."""
