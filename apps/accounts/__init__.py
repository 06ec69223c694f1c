"""Tenants: accounts, users and their roles, API tokens, and who owns which hostname."""
