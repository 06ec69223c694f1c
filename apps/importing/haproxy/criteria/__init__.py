"""Conditions of haproxy.cfg as formulas over what a request has."""
