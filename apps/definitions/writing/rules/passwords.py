"""Inside a write: passwords and keys of rules become hashes and digests; what was not sent again stays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from apps.compiler.grammars.authentication import ROUNDS
from apps.core.secrets.password_hashes import fits, new_hash
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.traffic.policy import Rules
from apps.definitions.writing.change_set import ChangeSet

Stored = Mapping[str, Any] | None


def stored_rules(changes: ChangeSet, rules: Rules, before: Stored) -> dict[str, Any]:
    """The rules as rows have them; a name without any secret is an error."""
    found = write(Rules, rules)
    for block, field, made in SECRETS:
        said = getattr(rules, block)
        pairs = getattr(said, field) if said else None
        if pairs is not None:
            found[block][field] = _kept(
                changes, f"/spec/rules/{block}/{field}", pairs, _known(before, block, field), made
            )
    return found


def _known(before: Stored, block: str, field: str) -> Mapping[str, str]:
    return ((before or {}).get(block) or {}).get(field) or {}


def _kept(
    changes: ChangeSet, pointer: str, pairs: Any, known: Mapping[str, str], made: Callable[[str, str], str]
) -> dict[str, str]:
    found = {}
    for name, secret in pairs:
        if not secret and name not in known:
            changes.add_error(f"{pointer}/{name}", "missing", f"Fill in {name}.")
        found[name] = made(secret, known.get(name, "")) if secret else known.get(name, "")
    return found


def _hash(password: str, known: str) -> str:
    return known if known and fits(password, known) else new_hash(password, ROUNDS)


def _digest(key: str, _known: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


SECRETS: tuple[tuple[str, str, Callable[[str, str], str]], ...] = (
    ("basic_auth", "users", _hash),
    ("api_keys", "keys", _digest),
)


def brings_secrets(row: Any, spec: Any) -> bool:
    """Whether the rules of a document change a password or key, which no document shows."""
    for block, field, made in SECRETS:
        said = getattr(spec.rules, block) if spec.rules else None
        known = _known(row.rules, block, field)
        for name, secret in (getattr(said, field) if said else None) or ():
            if secret and made(secret, known.get(name, "")) != known.get(name):
                return True
    return False


def names_secrets(wanted: Any) -> bool:
    """Whether an object, as it was sent, has a password or key in its rules, or the secret of a channel."""
    found = wanted
    spec = wanted.get("spec") if isinstance(wanted, Mapping) else None
    if isinstance(spec, Mapping) and spec.get("secret"):
        return True
    for name in ("spec", "rules"):
        found = found.get(name) if isinstance(found, Mapping) else None
    for block, field, _ in SECRETS:
        said = found.get(block) if isinstance(found, Mapping) else None
        pairs = said.get(field) if isinstance(said, Mapping) else None
        if isinstance(pairs, Mapping) and any(pairs.values()):
            return True
    return False
