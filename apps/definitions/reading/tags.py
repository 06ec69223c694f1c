"""Reads tags and grants: a tag is `key=value`, and a grant gives an account one hostname or one tag."""

from __future__ import annotations

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.definitions.reading.fields import Reader, boolean
from apps.definitions.reading.specs import GrantSpec
from apps.definitions.shapes.base.words import MAX_TAGS, read_instant, read_tag, read_tag_word


def read_tags(reader: Reader | None) -> tuple[tuple[str, str], ...]:
    """An object of at most 20 keys with a value each, by key; nothing for an absent one."""
    if reader is None:
        return ()
    if len(reader.data) > MAX_TAGS:
        reader.fault("", "too_many", f"Use at most {MAX_TAGS} tags.")
        return ()
    for key in reader.data:
        try:
            read_tag_word(key)
        except GrammarError as error:
            reader.fault(key, error.code, error.message)
    return tuple((key, reader.required(key, read_tag_word)) for key in sorted(reader.data))


def read_grant(reader: Reader) -> GrantSpec:
    """`{account, hostname | tag, may_load_test?, expires_at?}`."""
    spec = GrantSpec(
        account=reader.required("account", grammar.name),
        hostname=reader.optional("hostname", grammar.hostname, None),
        tag=reader.optional("tag", read_tag, None),
        may_load_test=reader.optional("may_load_test", boolean, default=True),
        expires_at=reader.optional("expires_at", read_instant, None),
    )
    if reader.has("hostname") == reader.has("tag"):
        reader.fault("", "one_of", "Grant exactly one of hostname and tag.")
    return spec
