"""The form of the table: a row is one URL with a method, the answer for each kind of caller, and how to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Three = tuple[int, int, int]
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Codes:
    """Status codes: of another account's and of the own account's viewer, editor, owner; of an operator account's
    viewer, operator, admin. The objects asked for belong to the own account, or to the operator."""

    other: Three
    own: Three
    operators: Three

    def __str__(self) -> str:
        parts = (self.other, self.own, self.operators)
        return " | ".join(str(part[0]) if len(set(part)) == 1 else " ".join(map(str, part)) for part in parts)


@dataclass(frozen=True, slots=True)
class Open:
    """Status codes of a page for anybody: without a session, and with one."""

    anonymous: int
    signed_in: int

    def __str__(self) -> str:
        return f"anybody {self.anonymous}, signed in {self.signed_in}"


def codes(other: int | str, own: int | str, operators: int | str) -> Codes:
    """A number is for all three roles, a text such as `403 404 404` names them one by one."""
    return Codes(_three(other), _three(own), _three(operators))


def _three(given: int | str) -> Three:
    if isinstance(given, int):
        return (given, given, given)
    first, second, third = (int(word) for word in given.split())
    return (first, second, third)


@dataclass(frozen=True, slots=True)
class Row:
    """One URL (by name) and method.

    `path`, `query`, `body` and `form` may hold `$pool` for the id of an object of the setup. `holds` is the object
    that the request speaks of: whoever may not see it gets the very answer that they would get were it not there.
    `all` stands for everything that the own account has, as lists do. `only_asks` marks a POST that changes nothing,
    which a token that only reads may send; `by_viewers` what viewers may do as well. `odd` says how an odd caller is
    answered otherwise than usual. `at` is the path of an URL without a name.
    """

    url: str
    method: str
    codes: Codes | Open
    path: Mapping[str, str] = field(default_factory=dict)
    holds: str = ""
    body: Any = None
    form: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    only_asks: bool = False
    by_viewers: bool = False
    odd: Mapping[str, int] = field(default_factory=dict)
    at: str = ""

    @property
    def is_api(self) -> bool:
        """Whether a token opens the URL."""
        return self.url.startswith("api:")

    @property
    def writes(self) -> bool:
        """Whether the method may change something."""
        return self.method not in SAFE

    def __str__(self) -> str:
        return f"{self.method} {self.url}"
