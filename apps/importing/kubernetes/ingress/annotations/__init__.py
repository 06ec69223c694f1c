"""Annotations of Ingresses, by what they are about."""
