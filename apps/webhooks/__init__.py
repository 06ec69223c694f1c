"""Webhooks: tells the programs of an account what happened to it, signed and repeated until they heard."""
