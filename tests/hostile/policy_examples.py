"""Every field of every block of a policy, with a value that is read."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
JWT_KEY = (
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9\n"
    "q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==\n-----END PUBLIC KEY-----\n"
)
BASIC_AUTH: Document = {"users": {"anna": "a long password"}, "realm": "Shop", "keep_header": True}
POLICY_RULES: Document = {
    "access": {"allow": ["offices"], "deny": ["offices"], "status": 403},
    "api_keys": {"keys": {"shop": "k" * 32}, "header": "X-Api-Key", "name_header": "X-Client"},
    "jwt": {
        "issuer": "https://a.example", "audience": "api", "leeway_s": 1, "keep_header": True,
        "keys": [{"algorithm": "ES256", "pem": JWT_KEY, "kid": "k1"}], "claims": {"sub": "X-User"},
        "jwks_url": "https://a.example/jwks", "jwks_grace_s": 60,
    },
    "request_headers": {"set": {"X-A": "v"}, "add": {"X-B": "v"}, "remove": ["X-C"]},
    "response_headers": {"set": {"X-A": "v"}, "add": {"X-B": "v"}, "remove": ["X-C"], "set_if_absent": {"X-D": "v"}},
    "typed_headers": {"types": ["text/html"], "set": {"X-A": "v"}, "add": {"X-B": "v"}, "remove": ["X-C"]},
    "security_headers": {
        "hsts_seconds": 1, "hsts_subdomains": True, "no_sniff": True, "frames": "deny", "referrer": "no-referrer",
        "caching": "no-store",
    },
    "cors": {
        "origins": ["https://a.example"], "methods": ["GET"], "headers": ["X-A"], "exposed_headers": ["X-B"],
        "credentials": True, "max_age_s": 1,
    },
    "rewrite": {
        "host": "a.example", "drop_query": True, "path_regex": "/(x)", "path_replacement": r"/\1",
        "query_keep": ["a"], "query_drop": ["a"], "query_set": {"a": "b"},
    },
    "maintenance": {
        "enabled": True, "status": 503, "content_type": "text/plain", "body": "x", "retry_after_s": 1,
        "allow": ["192.0.2.0/24"],
    },
    "client_limit": {
        "requests": 10, "in_flight": 5, "bytes_out": 5000, "bytes_in": 5000, "errors": 10, "per": "second", "burst": 20,
        "key": "header", "key_name": "X-Key",
        "ipv4_prefix": 32, "ipv6_prefix": 64, "counted_for": "account", "action": "reject", "log_only": False,
        "exempt": ["192.0.2.0/24"], "clients": 1000, "ban_after": 5, "ban_within_s": 60, "ban_for_s": 600,
    },
    "error_pages": {"statuses": [503], "content_type": "text/html", "body": "x", "intercept": True},
    "body": {"max_bytes": 1, "buffered": True},
    "bandwidth": {"download_bytes_per_s": 10_000, "upload_bytes_per_s": 10_000, "per": "request"},
    "timeouts": {"response_ms": 1, "tunnel_ms": 1},
    "response_rewrite": {
        "location_prefix": "http://app.internal:8080/", "location_replacement": "/", "secure_cookies": True,
    },
    "retries": {"after_sending": False, "attempts": 1},
    "overflow": {"mode": "listed", "order": ["us-central1"]},
    "log": {"requests": "sampled", "one_in": 2, "query": True, "headers": ["User-Agent"]},
    "split": {
        "stick_by": "cookie", "header": "X-A", "cookie": "a", "max_age_s": 1, "secure": True, "http_only": True,
        "same_site": "lax",
    },
}  # fmt: skip
