"""Load balancers leave: files that go on without us, in each of several formats."""
