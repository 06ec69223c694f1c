"""Public keys of tokens as the text of a form: a line `RS256 2026-1` (algorithm, key id), below it the key in PEM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from apps.definitions.shapes.traffic.authentication import Jwt
from apps.web.kit.shape_fields import Text, words

HINT = "For each key: a line with its algorithm and, if tokens name it, its key id; then the key in PEM."
EXAMPLE = "RS256 2026-1\n-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----"
BEGIN, END = "-----BEGIN ", "-----END "


def key_field() -> Text:
    """The field."""
    attributes = {"rows": 6, "spellcheck": "false", "class": "mono long", "wrap": "off"}
    attributes |= {"placeholder": EXAMPLE}
    said = words(Jwt, "keys") | {"help_text": HINT}
    return Text(**said, widget=forms.Textarea(attrs=attributes))


def texts_of_keys(stored: Mapping[str, Any] | None) -> str:
    """The keys of a stored block, as the field has them."""
    return written((stored or {}).get("keys") or [])


def keys_of(text: str) -> list[dict[str, str]]:
    """What was typed as keys; what is missing is left out, for the document to refuse."""
    found: list[dict[str, str]] = []
    is_pem = False
    for line in filter(None, map(str.strip, text.splitlines())):
        if is_pem:
            found[-1]["pem"] += f"{line}\n"
            is_pem = not line.startswith(END)
        elif line.startswith(BEGIN):
            if not found or "pem" in found[-1]:
                found.append({})
            found[-1]["pem"], is_pem = f"{line}\n", True
        else:
            algorithm, _, kid = line.partition(" ")
            found.append({"algorithm": algorithm} | ({"kid": kid.strip()} if kid.strip() else {}))
    return found


def written(keys: list[dict[str, str]]) -> str:
    """Stored keys as text."""
    return "\n".join(f"{key['algorithm']} {key.get('kid', '')}".strip() + f"\n{key['pem']}" for key in keys)
