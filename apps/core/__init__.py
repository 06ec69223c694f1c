"""The kernel under every app: clock, queue after commit, leases, live events, base errors. Knows no app."""
