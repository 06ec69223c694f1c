"""SHOW to machines: what every request passes: who calls, how often, once only, and how refusals look."""
