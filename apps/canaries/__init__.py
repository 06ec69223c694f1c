"""Canaries: a route's share for one of its pools grows in steps, as long as that pool does no worse than agreed."""
