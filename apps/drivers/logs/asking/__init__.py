"""OBSERVE: questions about lines of requests, answered by DuckDB in processes of their own."""
