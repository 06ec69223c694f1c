"""DEFINE: small calls that change one part of an object."""
