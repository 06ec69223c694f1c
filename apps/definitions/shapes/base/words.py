"""The words that shapes write their fields with: a type, its grammar, and what programs are told of it.

The grammar decides; the schema is never stricter than it is, so a client that follows the API's document is not kept
from anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypeVar, cast

from pydantic import Field

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import names
from apps.core.errors import FieldError
from apps.core.written.numbers import plain
from apps.definitions.shapes.base.reading import escaped
from apps.definitions.shapes.base.shape import Check, Data, Grammar, Wrong

E = TypeVar("E", bound=StrEnum)
MAX_LIST = 1000
MAX_TAGS = 20
# In these years an hour more or another zone is still a moment.
YEARS = range(1970, 2201)
NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
REFERENCE = r"^[a-z0-9][a-z0-9-]{0,62}(/[a-z0-9][a-z0-9-]{0,62})?$"
HOSTNAME = r"^(\*\.)?([a-z0-9-]{1,63}\.)+[a-z0-9-]{1,63}$"
SERVER_HOST = r"^([a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63}$"
ROUTE_HOSTNAME = r"^(\*|(\*\*?\.)?([a-z0-9-]{1,63}\.)+[a-z0-9-]{1,63})$"
PATH = r"^/[A-Za-z0-9._~+=:@&!%/-]*$"
TAG_WORD = r"^[a-z0-9-]{1,63}$"
METHODS = tuple(sorted(grammar.METHODS))

_UNWANTED_IN_TITLES = frozenset('<>"`{}$%\\;|=@')
_TAG_WORD = re.compile(r"[a-z0-9-]{1,63}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def text(
    read: Callable[[Any], str], title: str, longest: int | None = None, pattern: str = "", *, blank: bool = False
) -> Grammar:
    """Text; `title` says what it is, `blank` that it may be empty, whatever `read` says of that."""
    schema: dict[str, Any] = {"type": "string", "title": title}
    schema |= {"pattern": pattern} if pattern else {}
    schema |= {"maxLength": longest} if longest else {}
    schema |= {} if blank else {"minLength": 1}
    return Grammar((lambda value: "" if value == "" else read(value)) if blank else read, schema)


def matching(pattern: str, code: str, sentence: str, longest: int = 2048) -> Callable[[Any], str]:
    """The grammar of a text that a pattern describes wholly."""
    compiled = re.compile(pattern)

    def read(value: object) -> str:
        if isinstance(value, str) and len(value) <= longest and compiled.fullmatch(value):
            return value
        raise GrammarError(code, sentence)

    return read


def whole(lowest: int, highest: int) -> Grammar:
    """A whole number between two bounds."""
    schema = {"type": "integer", "minimum": lowest, "maximum": highest}
    return Grammar(lambda value: grammar.integer(value, lowest, highest), schema)


def real(lowest: float, highest: float) -> Grammar:
    """A finite number between two bounds."""

    def read(value: object) -> float:
        if type(value) not in (int, float) or not math.isfinite(cast("float", value)):
            raise GrammarError("not_number", "Write this value as a number, without quotes.")
        if not lowest <= cast("float", value) <= highest:
            raise GrammarError("out_of_range", f"Use a number from {plain(lowest, 6)} to {plain(highest, 6)}.")
        return float(cast("float", value))

    return Grammar(read, {"type": "number", "minimum": lowest, "maximum": highest})


def at_most(count: int, what: str) -> Check:
    """A list has no more entries than that; programs are told what every list may have."""

    def asked(values: Sized, _: Data) -> None:
        if len(values) > count:
            raise GrammarError("too_many", f"Use at most {count} {what}.")

    return Check(asked)


def word(kind: type[E], labels: Mapping[E, str] | None = None, *, only: Iterable[E] | None = None) -> Grammar:
    """One of a closed list; `labels` are what people call them in the order in which forms offer them."""

    def read(value: object) -> E:
        if isinstance(value, str) and value in kind.__members__.values():
            return kind(value)
        raise GrammarError("choice", f"Use one of {', '.join(kind)}.")

    schema = {"type": "string", "enum": [str(each) for each in only or kind]}
    return Grammar(read, schema, str, {str(each): label for each, label in (labels or {}).items()})


def one_of(*known: str, labels: Mapping[str, str] | None = None, sentence: str = "") -> Grammar:
    """One of a closed list that only documents and rows know; `labels` as above, of each word where there are some."""
    known = known or tuple(labels or ())

    def read(value: object) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise GrammarError("choice", sentence or f"Use one of {', '.join(known)}.")

    return Grammar(read, {"type": "string", "enum": list(known)}, labels=labels)


def read_boolean(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise GrammarError("not_boolean", "Write true or false, without quotes.")
    return value


def read_title(value: object) -> str:
    """What people call a region, fleet or account: printable, no markup, no template signs, at most 120 characters."""
    if not isinstance(value, str):
        raise GrammarError("not_text", "Write this value as text.")
    if not value or value != value.strip():
        raise GrammarError("blank", "Fill in a title without spaces at its ends.")
    if len(value) > 120:
        raise GrammarError("too_long", f"Use at most 120 characters; this title has {len(value)}.")
    if not value.isprintable() or _UNWANTED_IN_TITLES & set(value):
        raise GrammarError("title", "Use letters, digits, spaces and plain punctuation in a title.")
    return value


def read_reference(value: object) -> str:
    """The name of another object: `name`, or `account/name` for one of another account."""
    if not isinstance(value, str):
        raise GrammarError("not_text", "Write the name of the object as text.")
    for part in value.split("/", 1):
        grammar.name(part)
    return value


def read_tag_word(value: object) -> str:
    """The key or the value of a tag."""
    if not isinstance(value, str) or not _TAG_WORD.fullmatch(value):
        raise GrammarError("tag", "Use 1 to 63 lower-case letters, digits and hyphens in a tag's key and value.")
    return value


def read_tag(value: object) -> str:
    """`key=value`."""
    if not isinstance(value, str) or value.count("=") != 1:
        raise GrammarError("tag", "Write a tag as key=value, such as customer=acme.")
    for each in value.split("="):
        read_tag_word(each)
    return value


def read_pairs(
    value: object, read_key: Callable[[Any], str], read_value: Callable[[Any], str]
) -> tuple[tuple[str, str], ...]:
    """An object with a text for each key, by key."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise GrammarError("not_object", "Write an object with named fields here.")
    field_errors = []
    for read, key, entry in [
        *((read_key, key, key) for key in value),
        *((read_value, key, entry) for key, entry in sorted(value.items())),
    ]:
        pointer = f"/{escaped(key)}"
        try:
            if entry is None:
                field_errors.append(FieldError(pointer, "missing", f"Fill in {key}."))
            else:
                read(entry)
        except GrammarError as error:
            field_errors.append(FieldError(pointer, error.code, error.message))
    if field_errors:
        raise Wrong(*field_errors)
    return tuple(sorted(value.items()))


def sorted_pairs(pairs: Any) -> dict[str, str]:
    """Pairs as documents have them."""
    return dict(sorted(dict(pairs).items()))


def _tags(value: object) -> tuple[tuple[str, str], ...]:
    if isinstance(value, Mapping) and len(value) > MAX_TAGS:
        raise GrammarError("too_many", f"Use at most {MAX_TAGS} tags.")
    return read_pairs(value, read_tag_word, read_tag_word)


def read_instant(value: object) -> datetime:
    """A moment in UTC to the second: `2027-01-31T00:00:00Z`."""
    if isinstance(value, str) and _INSTANT.fullmatch(value):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
        if found and found.year in YEARS:
            return found
    raise GrammarError("instant", "Write a moment in UTC such as 2027-01-31T00:00:00Z.")


def instant_text(moment: datetime | None) -> str | None:
    """A moment as documents have it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def as_texts(tags: Mapping[str, str]) -> list[str]:
    """`{"customer": "acme"}` → `["customer=acme"]`, by key."""
    return [f"{key}={value}" for key, value in sorted(tags.items())]


# Whether loopback is allowed depends on the region's fleets, which services know.
def _server_address(value: object) -> str:
    return grammar.server_address(value, local_development=True)


LISTED = Field(max_length=MAX_LIST)
Name = Annotated[str, text(grammar.name, "a name", pattern=NAME)]
# The name of an object of the operator's, which needs no account in front of it; or of one that others may have.
ByName = Annotated[str, replace(text(grammar.name, "a name", pattern=NAME), refers=True)]
Reference = Annotated[
    str, replace(text(read_reference, "a name, or account/name", pattern=REFERENCE), refers=True, with_account=True)
]
Title = Annotated[str, text(read_title, "text", 120)]
Hostname = Annotated[str, text(grammar.hostname, "a host name", 253, HOSTNAME)]
RouteHostname = Annotated[str, text(names.hostname_of_route, "a host name", 253, ROUTE_HOSTNAME)]
Host = Annotated[str, text(grammar.redirect_host, "a host name without wildcard", 253, HOSTNAME)]
ServerHost = Annotated[str, text(grammar.server_host, "a host name without port", 253, SERVER_HOST)]
Path = Annotated[str, text(grammar.path, "a path", grammar.MAX_PATH, PATH)]
Boolean = Annotated[bool, Grammar(read_boolean, {"type": "boolean"})]
Port = Annotated[int, whole(1, 65535)]
TimeMs = Annotated[int, whole(1, grammar.MAX_TIME_MS)]
Method = Annotated[str, Grammar(grammar.method, {"type": "string", "enum": METHODS})]
Instant = Annotated[datetime, Grammar(read_instant, {"type": "string", "format": "date-time"}, instant_text)]
ServerAddress = Annotated[str, text(_server_address, "an address", 253)]
Pairs = tuple[tuple[str, str], ...]
TAGS = Grammar(
    _tags,
    {
        "type": "object",
        "title": f"at most {MAX_TAGS} keys with a value each, of lower-case letters, digits and hyphens",
        "additionalProperties": {"type": "string", "minLength": 1, "pattern": TAG_WORD},
    },
    sorted_pairs,
)
Tags = Annotated[Pairs, TAGS]
