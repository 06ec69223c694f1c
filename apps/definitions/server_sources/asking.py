"""Asks a source which servers there are now: by DNS (A, AAAA, SRV), or a list of targets over HTTPS or in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import dns.exception
import dns.resolver

from apps.accounts.hostnames.resolving import resolver
from apps.core.outbound import fetch
from apps.definitions.models import ServerSource
from apps.definitions.ports import PORTS
from apps.definitions.server_sources.deciding import HIGHEST_WEIGHT, FoundServer, short_number
from apps.definitions.server_sources.registries import Aws, registry_of
from apps.definitions.shapes.servers.source import Kind, Source

TIMEOUT_S = 2.0
MAX_BYTES = 1024 * 1024
MOST = 250
# SRV weights are 0–65 535; ours 0–256.
HIGHEST_SRV = 65_535


class BadAnswer(Exception):
    """The source did not answer, or in a way that we do not take; the text is a sentence for the pool's owner."""


def ask(source: Source) -> list[FoundServer]:
    """The servers that it lists now. Raises BadAnswer; Refused and Unreachable for URLs (core/outbound.py)."""
    return few({Kind.DNS: _addresses, Kind.SRV: _services, Kind.HTTP: _targets}[source.kind](source))


def few(servers: Iterable[FoundServer]) -> list[FoundServer]:
    """All of them. Raises BadAnswer where there are more than a backend takes."""
    found = list(servers)
    if len(found) > MOST:
        raise BadAnswer(f"The source lists {len(found)} servers; at most {MOST} are taken.")
    if any(not 0 < each.port <= 65535 for each in found):
        raise BadAnswer("The source lists a server with a port that is none from 1 to 65535.")
    return found


def _addresses(source: Source) -> Iterator[FoundServer]:
    for kind in ("A", "AAAA"):
        for record in _records(source.name, kind):
            yield FoundServer(record.address, source.port)


def _services(source: Source) -> Iterator[FoundServer]:
    """Those of the lowest priority; all others are backups. Equal weights are nobody's word about weights."""
    records = [each for each in _records(source.name, "SRV") if each.target.to_text() != "."]
    first = min((each.priority for each in records), default=0)
    weighs = len({each.weight for each in records}) > 1
    for record in records:
        name = record.target.to_text(omit_final_dot=True).lower()
        weight = max(1, round(record.weight * HIGHEST_WEIGHT / HIGHEST_SRV)) if record.weight else 0
        yield FoundServer(
            name, record.port, weight if weighs else None, backup=record.priority > first, hint=name.partition(".")[0]
        )


def _records(name: str, kind: str) -> list[Any]:
    """The records; none where the name has none of the kind. A name that is gone is no answer."""
    try:
        answer = resolver().resolve(name, kind, lifetime=TIMEOUT_S, raise_on_no_answer=False, search=False)
    except dns.resolver.NXDOMAIN:
        raise BadAnswer(f"There is no name {name}.") from None
    except (dns.exception.DNSException, OSError):
        raise BadAnswer(f"The name servers of {name} did not answer.") from None
    return list(answer.rrset or ())


def _targets(source: Source) -> Iterator[FoundServer]:
    answer = fetch(source.name, headers={"Accept": "application/json"}, timeout=TIMEOUT_S, limit=MAX_BYTES + 1)
    if answer.status != 200:
        raise BadAnswer(f"The response is {answer.status}.")
    yield from _of_list(answer.body)


def ask_file(row: ServerSource, source: Source) -> list[FoundServer]:
    """The servers that a file lists now, which its account may use. Raises BadAnswer, NotYours."""
    path = Path(str(registry_of(source, row.backend.account.name)))
    try:
        with path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        raise BadAnswer("The file cannot be read on this worker.") from None
    return few(_of_list(body))


def ask_cloud(row: ServerSource, source: Source) -> list[FoundServer]:
    """The servers that a cloud lists now, which its account may use. Raises BadAnswer, NotYours."""
    aws = cast("Aws", registry_of(source, row.backend.account.name))
    return few(PORTS.cloud_servers(aws, source))


def _of_list(body: bytes) -> Iterator[FoundServer]:
    """`[{"targets": ["10.0.0.1:8080"], "labels": {"weight": "50"}}]`, as Prometheus reads it from URLs and files."""
    if len(body) > MAX_BYTES:
        raise BadAnswer("The answer is longer than 1 MB.")
    try:
        groups = json.loads(body)
    except (ValueError, RecursionError):
        raise BadAnswer("The answer is not JSON.") from None
    if not isinstance(groups, list):
        raise BadAnswer("The answer is no list of objects with targets.")
    for group in groups:
        yield from _of_group(group)


def _of_group(group: object) -> Iterator[FoundServer]:
    """Labels that we do not know say nothing."""
    targets = group.get("targets") if isinstance(group, Mapping) else None
    if not isinstance(group, Mapping) or not isinstance(targets, list):
        raise BadAnswer("The answer has an entry without a list of targets.")
    labels = group.get("labels")
    weight = labels.get("weight") if isinstance(labels, Mapping) else None
    share = short_number(weight) if isinstance(weight, str) else None
    if weight is not None and (share is None or share > HIGHEST_WEIGHT):
        raise BadAnswer(f"The weight of a target is no whole number from 0 to {HIGHEST_WEIGHT}.")
    for target in targets:
        host, _, port = target.rpartition(":") if isinstance(target, str) else ("", "", "")
        number = short_number(port)
        if not host or number is None or not 0 < number <= 65535:
            raise BadAnswer("The answer has a target that is not host:port.")
        yield FoundServer(host.strip("[]").lower(), number, share)
