"""What rules look at: each watch has one function that says which objects are wrong now, and why."""
