"""Who may ask: by network, by name and password, by key, by token."""
