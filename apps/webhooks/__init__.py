"""Webhooks: what the audit record says, told to the programs of an account, signed, in order and without loss."""
