"""The suite: pure, golden, apps, doors, conformance, architecture, e2e; bench is run by `make bench`."""
