"""Existing load balancers of clouds as definitions of ours: pure mappings, one for each cloud."""
