"""Automatic certificates: ordered from certificate authorities by ACME (RFC 8555), proved, stored, renewed."""
