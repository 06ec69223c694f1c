"""How a definition becomes traffic; README.md beside this file is the map."""
