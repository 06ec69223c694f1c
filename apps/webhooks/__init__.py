"""Webhooks: what the audit log says, told to the programs of an account, signed, in order and without loss."""
