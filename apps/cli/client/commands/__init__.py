"""Commands of the client, one module per noun."""
