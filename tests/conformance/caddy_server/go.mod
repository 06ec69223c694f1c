// The program that tests/caddy.py builds; go.sum has the hashes.
module spillway/tests/caddy

go 1.21.0

require github.com/caddyserver/caddy/v2 v2.8.4
