"""SHOW what a plan would do, before anybody lets it happen."""
