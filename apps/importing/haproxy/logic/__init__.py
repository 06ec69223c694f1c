"""Conditions of haproxy.cfg as boolean algebra over what a request has."""
