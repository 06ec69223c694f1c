"""YAML as manifests, with the line of each field and what became of it."""
