"""TELL visitors: how the components of a status page are and were, and what people write about incidents."""
