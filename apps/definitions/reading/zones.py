"""DEFINE: the kinds Zone and Record, read from their documents and written out again.

`Zone {domain, driver, server?, key_name?, key_algorithm?, credentials?, stack?, resolvers?, tags?}`,
`Record {zone, label, type, ttl?, values | static_ip | load_balancer, tags?}`.
"""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import RecordType
from apps.core import outbound
from apps.definitions.models import Record, Zone
from apps.definitions.reading.fields import Reader, choice, integer, reference
from apps.definitions.reading.outside import environment_reference, or_blank, resolver, server
from apps.definitions.reading.specs import RecordSpec, ZoneSpec
from apps.definitions.reading.tags import read_tags
from apps.definitions.values.record_values import MAX_VALUES, TTLS, domain, fits_type, label, value_of

Document = dict[str, Any]
Driver: Any = Zone.Driver
ALGORITHMS = ("hmac-sha256", "hmac-sha384", "hmac-sha512")
MAX_RESOLVERS = 8
SOURCES = ("values", "static_ip", "load_balancer")
# What can follow an address, and what can follow a load balancer (a CNAME: to the name that its cloud gave it).
FOLLOW_ADDRESS = (RecordType.A, RecordType.AAAA)
FOLLOW_BALANCER = (*FOLLOW_ADDRESS, RecordType.CNAME)
_KEY_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63}){0,8}")
_MEMORY = re.compile(r"memory://[a-z0-9-]{1,63}")
# What each driver needs, and what it has besides; every other field must be left out.
NEEDS = {
    Zone.Driver.RFC2136: ("server", "key_name", "credentials"),
    Zone.Driver.POWERDNS: ("server", "credentials"),
    Zone.Driver.ROUTE53: ("stack",),
    Zone.Driver.MEMORY: (),
}
TAKES = {Zone.Driver.RFC2136: ("key_algorithm",), Zone.Driver.MEMORY: ("server",)}
OF_DRIVERS = ("server", "key_name", "key_algorithm", "credentials", "stack")
DEFAULT_ALGORITHM = ALGORITHMS[0]


def _driver(value: object) -> Any:
    found = choice(Driver)(value)
    if found == Zone.Driver.MEMORY and not settings.DEVELOPMENT:
        raise GrammarError("choice", "Use rfc2136, powerdns or route53; memory is for development.")
    return found


def _key_name(value: object) -> str:
    if isinstance(value, str) and len(value) <= 253 and _KEY_NAME.fullmatch(value):
        return value
    raise GrammarError("key_name", "Write the name of the TSIG key in lower case, without a final dot.")


def _algorithm(value: object) -> str:
    if isinstance(value, str) and value in ALGORITHMS:
        return value
    raise GrammarError("choice", f"Use one of {', '.join(ALGORITHMS)}.")


def _server_of(driver: str | None) -> Any:
    """The grammar of the server that a driver speaks with."""
    if driver == Zone.Driver.POWERDNS:
        return _powerdns
    return _memory if driver == Zone.Driver.MEMORY else server


def _memory(value: object) -> str:
    if isinstance(value, str) and _MEMORY.fullmatch(value):
        return value
    raise GrammarError("server", "Write memory://name.")


def _powerdns(value: object) -> str:
    """The URL of PowerDNS's API, on a server that operators run: private networks and loopback are usual."""
    text = value if isinstance(value, str) else ""
    try:
        target = outbound.read_url(text, schemes=("https", "http"))
    except outbound.Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    grammar.server_address(target.host, local_development=True)
    if target.scheme == "http" and not (settings.DEVELOPMENT or target.host in ("127.0.0.1", "::1", "localhost")):
        raise GrammarError("url", "Begin the URL with https://; the key of the API travels with every request.")
    if len(text) > 400 or "?" in text:
        raise GrammarError("url", "Use a URL of at most 400 characters, without a query.")
    return text


def read_zone(reader: Reader) -> ZoneSpec:
    """The zone, with what its driver needs and nothing else."""
    name = reader.required("domain", domain)
    driver = reader.required("driver", _driver)
    found = ZoneSpec(
        domain=name,
        driver=str(driver) if driver else "",
        server=reader.optional("server", or_blank(_server_of(driver)), ""),
        key_name=reader.optional("key_name", or_blank(_key_name), ""),
        key_algorithm=reader.optional("key_algorithm", or_blank(_algorithm), "") or DEFAULT_ALGORITHM,
        credentials=reader.optional("credentials", or_blank(environment_reference), ""),
        stack=reader.optional("stack", grammar.name, None),
        resolvers=reader.values("resolvers", resolver),
        tags=read_tags(reader.child("tags")),
    )
    if len(found.resolvers) > MAX_RESOLVERS:
        reader.fault("resolvers", "too_many", f"Use at most {MAX_RESOLVERS} resolvers.")
    if driver:
        _expect_of_driver(reader, driver)
    return found


def _expect_of_driver(reader: Reader, driver: Any) -> None:
    for field in OF_DRIVERS:
        given = reader.data.get(field)
        if field in NEEDS[driver] and not given:
            reader.fault(field, "missing", f"A zone with driver {driver} needs {field}; fill it in.")
        usual = field == "key_algorithm" and given == DEFAULT_ALGORITHM  # as documents that we write have it
        if given and not usual and field not in (*NEEDS[driver], *TAKES.get(driver, ())):
            reader.fault(field, "driver", f"A zone with driver {driver} has no {field}; leave it out.")


def read_record(reader: Reader) -> RecordSpec:
    """One set of records; exactly one of values, static_ip and load_balancer says what is served."""
    kind = reader.required("type", choice(RecordType))
    name = reader.required("label", label)
    values = reader.values("values", value_of(kind)) if kind else ()
    spec = RecordSpec(
        zone=reader.required("zone", reference),
        label=name,
        type=kind,
        ttl=reader.optional("ttl", integer(*TTLS), 300),
        values=tuple(sorted(value for value in values if value)),
        static_ip=reader.optional("static_ip", grammar.name, None),
        load_balancer=reader.optional("load_balancer", grammar.name, None),
        tags=read_tags(reader.child("tags")),
    )
    sources = [field for field in SOURCES if reader.has(field) and reader.data[field] != []]
    if len(sources) != 1:
        reader.fault("", "one_source", f"Use exactly one of {', '.join(SOURCES)}.")
    elif kind:
        _check_source(reader, sources[0], kind, spec)
    if kind and name:
        try:
            fits_type(name, kind)
        except GrammarError as error:
            reader.fault("label", error.code, error.message)
    return spec


def _check_source(reader: Reader, source: str, kind: RecordType, spec: RecordSpec) -> None:
    if source == "static_ip" and kind not in FOLLOW_ADDRESS:
        reader.fault("type", "source", "A record that follows a static IP is an A or an AAAA.")
    if source == "load_balancer" and kind not in FOLLOW_BALANCER:
        reader.fault("type", "source", "A record that follows a load balancer is an A, an AAAA or a CNAME.")
    if kind is RecordType.CNAME and len(spec.values) > 1:
        reader.fault("values", "too_many", "A CNAME has one value.")
    if kind is RecordType.MX and "0 ." in spec.values and len(spec.values) > 1:
        reader.fault("values", "null_mx", "`0 .` means that the domain accepts no mail; use it as the only value.")
    if len(spec.values) > MAX_VALUES:
        reader.fault("values", "too_many", f"Use at most {MAX_VALUES} values in one record.")


def zone_document(spec: ZoneSpec) -> Document:
    """The document of a specification."""
    return _zone(spec, spec.stack, dict(spec.tags))


def zone_row(row: Zone) -> Document:
    """The document of a stored zone."""
    return _zone(row, row.stack.name if row.stack else None, dict(row.tags))


def _zone(source: Zone | ZoneSpec, stack: str | None, tags: dict[str, str]) -> Document:
    return {
        "domain": source.domain,
        "driver": str(source.driver),
        "server": source.server,
        "key_name": source.key_name,
        "key_algorithm": source.key_algorithm,
        "credentials": source.credentials,
        "stack": stack,
        "resolvers": sorted(source.resolvers),
        "tags": dict(sorted(tags.items())),
    }


def record_document(spec: RecordSpec) -> Document:
    """The document of a specification."""
    return _record(spec, spec.zone, spec.static_ip, spec.load_balancer)


def record_row(row: Record, zone: str) -> Document:
    """The document of a stored record; `zone` is how its account names the zone."""
    static_ip = row.static_ip.name if row.static_ip else None
    return _record(row, zone, static_ip, row.load_balancer.name if row.load_balancer else None)


def _record(source: Record | RecordSpec, zone: str, static_ip: str | None, load_balancer: str | None) -> Document:
    return {
        "zone": zone,
        "label": source.label,
        "type": str(source.type),
        "ttl": source.ttl,
        "values": sorted(source.values),
        "static_ip": static_ip,
        "load_balancer": load_balancer,
        "tags": dict(sorted(dict(source.tags).items())),
    }
