"""SHOW to people, pure: the geometry of drawings that the server makes."""
