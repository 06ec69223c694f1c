"""The JSON of Caddy, which `caddy adapt` makes of a Caddyfile."""
