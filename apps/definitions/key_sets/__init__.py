"""Keys of token issuers: fetched from their URLs (JWKS), checked, kept, and told to nodes when they change."""
