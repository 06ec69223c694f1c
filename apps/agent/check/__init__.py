"""CHECK on the node: new files are tried before they run."""
