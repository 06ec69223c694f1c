"""The suite: pure, golden, apps, interfaces, conformance, architecture, e2e; bench is run by `make bench`."""
