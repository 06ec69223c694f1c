"""SHOW to people: routes and the hostnames that they match."""
