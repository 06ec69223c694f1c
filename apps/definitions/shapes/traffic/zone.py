"""The shape of a Zone: a DNS zone, who serves it, and what its driver needs for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, ClassVar

from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError
from apps.definitions.shapes.base.outside import environment_reference, resolver, server, web_server
from apps.definitions.shapes.base.shape import SORTED, About, Check, Data, Distinct, Shape
from apps.definitions.shapes.base.words import LISTED, TAGS, ByName, Pairs, at_most, matching, text, word
from apps.definitions.values import record_values


class ZoneDriver(StrEnum):
    """How a zone is written: by RFC 2136 with TSIG, PowerDNS's API, the stack that keeps it, or in memory (tests)."""

    RFC2136 = "rfc2136"
    POWERDNS = "powerdns"
    ROUTE53 = "route53"
    MEMORY = "memory"


ALGORITHMS = ("hmac-sha256", "hmac-sha384", "hmac-sha512")
DRIVERS = {
    ZoneDriver.RFC2136: "RFC 2136 with TSIG (BIND, Knot, Windows …)",
    ZoneDriver.POWERDNS: "PowerDNS by its API",
    ZoneDriver.ROUTE53: "Route 53, managed by a stack",
}
# What each driver needs, and what it has besides; every other field must be left out.
NEEDS: Mapping[str, tuple[str, ...]] = {
    ZoneDriver.RFC2136: ("server", "key_name", "credentials"),
    ZoneDriver.POWERDNS: ("server", "credentials"),
    ZoneDriver.ROUTE53: ("stack",),
    ZoneDriver.MEMORY: (),
}
TAKES: Mapping[str, tuple[str, ...]] = {ZoneDriver.RFC2136: ("key_algorithm",), ZoneDriver.MEMORY: ("server",)}
OF_DRIVERS = ("server", "key_name", "key_algorithm", "credentials", "stack")
SERVER = "host:port, or the URL of PowerDNS's API"
REFERENCE = (
    "A reference, never a secret: env:EXAMPLE reads SPILLWAY_DNS_EXAMPLE of the workers, and is used only at servers "
    "that SPILLWAY_DNS_EXAMPLE_SERVERS names."
)
KEY_NAME = matching(
    r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63}){0,8}",
    "key_name",
    "Write the name of the TSIG key in lower case, without a final dot.",
    253,
)
_MEMORY = matching(r"memory://[a-z0-9-]{1,63}", "server", "Write memory://name.")


def _algorithm(value: object) -> str:
    if isinstance(value, str) and value in ("", *ALGORITHMS):
        return value or ALGORITHMS[0]
    raise GrammarError("choice", f"Use one of {', '.join(ALGORITHMS)}.")


ALGORITHM = replace(
    text(_algorithm, ", ".join(ALGORITHMS), 20, blank=True),
    read=_algorithm,
    labels={each: each for each in ALGORITHMS},
)


def _of_driver(value: object, data: Data) -> None:
    grammars = {"powerdns": web_server, "memory": _MEMORY}
    if value != "":
        grammars.get(str(data.get("driver")), server)(value)


# Tags as the API's document has those of zones and records: without their pattern.
LABEL = {"type": "string", "minLength": 1, "maxLength": 63}
LABELS = replace(TAGS, schema={**TAGS.schema, "additionalProperties": LABEL})


@dataclass(frozen=True, slots=True)
class ZoneSpec(Shape):
    """A DNS zone and who serves it; customers with whom it is shared see its domain."""

    may_be_absent: ClassVar = ("driver", *OF_DRIVERS, "resolvers", "tags")

    domain: Annotated[
        str,
        text(record_values.domain, "a domain", record_values.MAX_NAME),
        About(
            "The domain of the zone. Cannot be changed.", "Domain", "example.com, without a final dot.", "example.com"
        ),
    ]
    driver: Annotated[
        ZoneDriver,
        word(ZoneDriver, DRIVERS),
        About("How Spillway writes the zone. Cannot be changed.", "Written by", "", "rfc2136"),
    ]
    server: Annotated[
        str,
        text(lambda value: value, "a server", 400, blank=True),  # judged by its driver
        Check(_of_driver),
        About("host:port for RFC 2136, the URL of PowerDNS's API.", "Server", None, "ns1.example.com:53", note=SERVER),
    ] = ""
    key_name: Annotated[
        str,
        text(KEY_NAME, "the name of a key", 253, blank=True),
        About("The name of the TSIG key.", "TSIG key", "Its name.", "spillway"),
    ] = ""
    key_algorithm: Annotated[str, ALGORITHM, About("The algorithm of the TSIG key.", "TSIG algorithm", "")] = (
        ALGORITHMS[0]
    )
    credentials: Annotated[
        str,
        text(environment_reference, "`env:NAME`", 2048, blank=True),
        About(REFERENCE, "Secret", None, "env:EXAMPLE", note="env:NAME"),
    ] = ""
    stack: Annotated[
        ByName | None, About("The stack that manages a Route 53 zone. Cannot be changed.", "Stack", "")
    ] = None
    resolvers: Annotated[
        tuple[Annotated[str, text(resolver, "an address, with a port where that is not 53", 80)], ...],
        LISTED,
        at_most(8, "resolvers"),
        Distinct(),
        SORTED,
        About("The resolvers that are asked for what is served.", "Resolvers"),
    ] = ()
    tags: Annotated[Pairs, LABELS, About("A grant for a tag lets a customer create records in the zone.", "Tags")] = ()

    @classmethod
    def together(cls, sent: Data) -> list[FieldError]:
        """What the driver needs, and nothing else."""
        driver = str(sent.get("driver"))
        return [
            field_error
            for field in OF_DRIVERS
            if driver in NEEDS and (field_error := _field_error(driver, field, sent.get(field)))
        ]


def _field_error(driver: str, field: str, given: object) -> FieldError | None:
    if field in NEEDS[driver] and not given:
        return FieldError(f"/{field}", "missing", f"A zone with driver {driver} needs {field}; fill it in.")
    usual = field == "key_algorithm" and given == ALGORITHMS[0]  # as documents that we write have it
    if given and not usual and field not in (*NEEDS[driver], *TAKES.get(driver, ())):
        return FieldError(f"/{field}", "driver", f"A zone with driver {driver} has no {field}; leave it out.")
    return None
