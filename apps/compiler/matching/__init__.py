"""COMPILE, what routes look at: patterns, values of requests and hosts, the same on every target."""
