"""The shapes of a NetworkList, and of the blocks of policies and listeners that name such lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from apps.compiler.checks.access import MAX_NETWORKS
from apps.compiler.grammar import GrammarError
from apps.compiler.model import access as model
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import NetworkBlock
from apps.definitions.shapes.base.shape import SORTED, UNORDERED, About, Check, Data, Distinct, Shape, Wrong
from apps.definitions.shapes.base.words import ByName, Instant, at_most, matching, text, whole

MAX_REASON = 120
MOST_LISTS = 8
MOST_COUNTRIES = 250
_CODE = matching("[A-Z]{2}", "country", "Write a country as two capital letters (ISO 3166), such as DE.", 2)


def _reason(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_REASON or value != value.strip():
        raise GrammarError("reason", f"Use at most {MAX_REASON} printable characters, without spaces at the ends.")
    return value


@dataclass(frozen=True, slots=True)
class NetworkEntry(Shape):
    """One network of a list."""

    network: Annotated[NetworkBlock, About("The network in CIDR.", "Network", example="192.0.2.0/24")]
    expires_at: Annotated[
        Instant | None,
        About("When it leaves the list (UTC). Default: never.", "Until", absent_when_empty=True),
    ] = None
    reason: Annotated[
        Annotated[str, text(_reason, "text", MAX_REASON, blank=True)],
        About("Why it is in the list, for people.", "Reason", absent_when_empty=True),
    ] = ""


def _each_once(entries: Sequence[NetworkEntry], _data: Data) -> None:
    seen: set[str] = set()
    twins = []
    for index, entry in enumerate(entries):
        if entry.network in seen:
            twins.append(FieldError(f"/{index}/network", "twice", "Another entry of the list has the same network."))
        seen.add(entry.network)
    if twins:
        raise Wrong(*twins)


def _by_network(entries: Sequence[NetworkEntry]) -> tuple[NetworkEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.network))


def _alone(countries: Sequence[str], data: Data) -> None:
    if countries and data.get("entries"):
        raise Wrong(FieldError("", "and_networks", "Use one list for countries and another for networks."))


@dataclass(frozen=True, slots=True)
class NetworkListSpec(Shape):
    """A named list of networks or countries that policies and listeners allow or deny; changes need no reload."""

    entries: Annotated[
        tuple[NetworkEntry, ...],
        at_most(MAX_NETWORKS, "networks in one list"),
        Check(_each_once),
        AfterValidator(_by_network),
        About("The networks, each once.", most=MAX_NETWORKS),
    ] = ()
    countries: Annotated[
        tuple[Annotated[str, text(_CODE, "a country", 2, "^[A-Z]{2}$")], ...],
        at_most(MOST_COUNTRIES, "countries"),
        Distinct(),
        SORTED,
        Check(_alone),
        About(
            "Instead of networks: countries, by the operator's database of addresses.",
            "Countries",
            "Two letters each, such as DE AT CH. A list names countries or networks, not both.",
            most=MOST_COUNTRIES,
            absent_when_empty=True,
        ),
    ] = ()


_LISTS: Any = (at_most(MOST_LISTS, "lists"), Distinct(), UNORDERED)
Allow = Annotated[
    tuple[ByName, ...] | None,
    *_LISTS,
    About(
        "Lists of networks that are allowed; all others are rejected. Default: all networks.",
        "Allow only",
        example="offices",
    ),
]
Deny = Annotated[
    tuple[ByName, ...] | None,
    *_LISTS,
    About("Lists of networks that are rejected, even if allow contains them.", "Deny"),
]


@dataclass(frozen=True, slots=True)
class ConnectionAccess(model.ConnectionAccess, Shape):
    """Which networks may connect."""

    sparse: ClassVar = True

    allow: Allow = None
    deny: Deny = None


@dataclass(frozen=True, slots=True)
class Access(model.Access, Shape):
    """Which networks have access."""

    sparse: ClassVar = True

    allow: Allow = None
    deny: Deny = None
    status: Annotated[
        Annotated[int, whole(400, 599)] | None,
        About("The status of the rejection. Default: 403.", "Status"),
    ] = None
