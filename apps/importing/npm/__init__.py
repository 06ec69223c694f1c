"""Reads the database of Nginx Proxy Manager: its rows are written as the nginx.conf that it would write."""
