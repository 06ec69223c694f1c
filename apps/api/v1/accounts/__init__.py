"""SHOW to machines: people, tokens, hostnames, webhooks and the audit log."""
