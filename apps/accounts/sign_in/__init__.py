"""Tenants: sign-in: limits on guessing, second factors, sessions, invitations."""
