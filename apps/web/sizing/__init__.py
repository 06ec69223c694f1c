"""SHOW to people: how many servers a pool needs."""
