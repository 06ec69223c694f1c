"""OBSERVE: lines of requests in ClickHouse, kept and searched by its HTTP interface."""
