"""The grammars of what authentication is configured with; each becomes a word of haproxy.cfg, of a map or of a file."""

from __future__ import annotations

import re

from apps.compiler.grammar import GrammarError, matching

# HAProxy hashes on the thread that serves everybody: 1 000 rounds take half a millisecond, the usual 5 000 take 2.6.
ROUNDS = 1000
PASSWORD_HASH = re.compile(rf"\$6\$rounds={ROUNDS}\$[A-Za-z0-9./]{{16}}\$[A-Za-z0-9./]{{86}}")
KEY_DIGEST = re.compile(r"[0-9a-f]{64}")
KEYS_ID = re.compile(r"keys-[0-9a-z]{1,20}")
ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
MAX_KEY_PEM = 4096
LEEWAY_S = 30
REALM = "Restricted"
API_KEY_HEADER = "X-Api-Key"
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----\n([A-Za-z0-9+/=]{1,64}\n){1,60}-----END PUBLIC KEY-----\n")


# A name that signs in; no colon, which ends it in the header.
user_name = matching(
    r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", "user_name", "Use 1 to 64 letters, digits, dots, hyphens and @."
)
# What the browser shows beside the question for a password.
realm = matching(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}", "realm", "Use 1 to 64 letters, digits, spaces, dots and hyphens.")
# What a key is called to servers.
key_name = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "key_name", "Use 1 to 64 letters, digits, dots and hyphens.")
# Who signs tokens, or for whom they are.
issuer = matching(r"[A-Za-z0-9][A-Za-z0-9:/._~@-]{0,255}", "issuer", "Use a URL or name without spaces and quotes.")
# How tokens name their key.
kid = matching(r"[A-Za-z0-9._~=+/:-]{1,128}", "kid", "Use 1 to 128 letters, digits and . _ ~ = + / : - only.")
# A claim, or one below others.
claim = matching(
    r"[A-Za-z0-9_]{1,64}(\.[A-Za-z0-9_]{1,64}){0,3}", "claim", "Write a claim such as sub or realm_access.name."
)
# Ours: what a form carries, and no text of anybody.
password_hash = matching(PASSWORD_HASH.pattern, "password", "Send the password again.")
key_digest = matching(KEY_DIGEST.pattern, "key", "Send the key again.")  # SHA-256 in hex
keys_id = matching(KEYS_ID.pattern, "key", "Send the keys again.")  # the name of a map of keys


def algorithm(value: object) -> str:
    """One that needs a public key: `none` and shared secrets are none."""
    if value in ALGORITHMS:
        return str(value)
    raise GrammarError("algorithm", f"Use one of {', '.join(ALGORITHMS)}.")


def public_key(value: object) -> str:
    """PEM of a public key in the form that OpenSSL writes."""
    if isinstance(value, str) and len(value) <= MAX_KEY_PEM and _PEM.fullmatch(value):
        return value
    raise GrammarError("public_key", "Paste a public key in PEM (BEGIN PUBLIC KEY).")
