"""DEFINE: reads tags and grants: a tag is `key=value`, and a grant gives an account one hostname or one tag."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.definitions.reading.fields import Reader, boolean
from apps.definitions.reading.specs import GrantSpec

MAX_TAGS = 20
LAST_YEAR = 2200
_WORD = re.compile(r"[a-z0-9-]{1,63}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def _word(value: object) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise GrammarError("tag", "Use 1 to 63 lower-case letters, digits and hyphens in a tag's key and value.")
    return value


def tag(value: object) -> str:
    """`key=value`."""
    if not isinstance(value, str) or value.count("=") != 1:
        raise GrammarError("tag", "Write a tag as key=value, such as customer=acme.")
    for word in value.split("="):
        _word(word)
    return value


def read_tags(reader: Reader | None) -> tuple[tuple[str, str], ...]:
    """An object of at most 20 keys with a value each, by key; nothing for an absent one."""
    if reader is None:
        return ()
    if len(reader.data) > MAX_TAGS:
        reader.fault("", "too_many", f"Use at most {MAX_TAGS} tags.")
        return ()
    for key in reader.data:
        try:
            _word(key)
        except GrammarError as error:
            reader.fault(key, error.code, error.message)
    return tuple((key, reader.required(key, _word)) for key in sorted(reader.data))


def as_texts(tags: Mapping[str, str]) -> list[str]:
    """`{"customer": "acme"}` → `["customer=acme"]`, by key."""
    return [f"{key}={value}" for key, value in sorted(tags.items())]


def instant(value: object) -> datetime:
    """A moment in UTC to the second: `2027-01-31T00:00:00Z`."""
    if isinstance(value, str) and _INSTANT.fullmatch(value):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
        if found and found.year <= LAST_YEAR:
            return found
    raise GrammarError("instant", "Write a moment in UTC such as 2027-01-31T00:00:00Z.")


def instant_text(moment: datetime | None) -> str | None:
    """A moment as documents have it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def read_grant(reader: Reader) -> GrantSpec:
    """`{account, hostname | tag, may_load_test?, expires_at?}`."""
    spec = GrantSpec(
        account=reader.required("account", grammar.name),
        hostname=reader.optional("hostname", grammar.hostname, None),
        tag=reader.optional("tag", tag, None),
        may_load_test=reader.optional("may_load_test", boolean, default=True),
        expires_at=reader.optional("expires_at", instant, None),
    )
    if reader.has("hostname") == reader.has("tag"):
        reader.fault("", "one_of", "Grant exactly one of hostname and tag.")
    return spec
