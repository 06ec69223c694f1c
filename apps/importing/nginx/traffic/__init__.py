"""Servers and locations of nginx.conf as load balancers and routes."""
