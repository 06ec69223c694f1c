"""Load balancers leave as files that go on without us; definitions are published for programs that read them."""
