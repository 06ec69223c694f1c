"""SHOW to people: regions, fleets, nodes and the rollouts that reach them."""
