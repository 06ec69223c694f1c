"""Tenants: hostnames: claims and their verification."""
