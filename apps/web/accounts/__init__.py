"""SHOW to people: accounts, who is in them, their tokens, grants, webhooks and the audit log."""
