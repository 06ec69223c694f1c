"""Metrics by what they are about: nodes, pools, limits, problems, certificates."""
