"""Values of a file of YAML or JSON, and what became of each of them."""
