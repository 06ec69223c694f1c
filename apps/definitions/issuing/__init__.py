"""Certificates that authorities issue by ACME: who issues, and how far each order has come."""
