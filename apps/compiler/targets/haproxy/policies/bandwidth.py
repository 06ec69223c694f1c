"""How fast bodies go. HAProxy has filters for it since 2.7; an older node leaves them out (checks/builds.py says so).

* Of each request: one filter for each direction. The number is looked up, so it changes without a reload.
* Of a client: HAProxy divides what a filter allows equally among the requests with the same key in a table. The number
  is the filter's, so each different one has a filter of its own. The key is the route and the client's address: what a
  client has on routes of others is theirs. Each node counts for itself.

Filters work in their order, and compression stands before them: what is counted is what clients receive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apps.compiler.client_limits import IPV4_PREFIX, IPV6_PREFIX
from apps.compiler.model.capabilities import BANDWIDTH
from apps.compiler.model.policy import Bandwidth
from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.policies import rules_followed
from apps.compiler.targets.haproxy.policies.lookup import Lookup
from apps.compiler.targets.haproxy.settings import HTTP
from apps.compiler.targets.haproxy.writer import Argument, Document, Section, Value

TABLE = "st_bandwidth"
REQUEST = "request"
# As few bytes as are worth a packet, and no more than a small part of the lowest limit.
AT_ONCE = ("min-size", "2896")
_DIRECTIONS = (("out", "download_bytes_per_s"), ("in", "upload_bytes_per_s"))
Blocks = Mapping[str, Any]


def texts(said: Bandwidth) -> dict[str, str]:
    """The limits of each request by their direction."""
    numbers = {direction: getattr(said, name) for direction, name in _DIRECTIONS if said.per == REQUEST}
    return {direction: str(number) for direction, number in numbers.items() if number is not None}


def add(section: Section, _listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """The filters, and the rules that turn them on for a request."""
    of_clients = {code: said for code, said in blocks.items() if said.per != REQUEST}
    section.add(".if", BANDWIDTH.condition)
    for direction in sorted({key for said in blocks.values() for key in texts(said)}):
        _add_for_requests(section, lookup, direction)
    if of_clients:
        key = f"%[var(txn.route)]/%[src,ipmask({IPV4_PREFIX},{IPV6_PREFIX})]"
        section.add("http-request", "set-var-fmt(txn.bandwidth_key)", key, "if", *lookup.any_holds())
    for direction, name in _DIRECTIONS:
        codes = {code: number for code, said in of_clients.items() if (number := getattr(said, name)) is not None}
        _add_for_clients(section, lookup, direction, codes)
    section.add(".endif")


def _add_for_requests(section: Section, lookup: Lookup, direction: str) -> None:
    name, variable = f"request-{direction}", f"txn.bandwidth_{direction}"
    section.add("filter", f"bwlim-{direction}", name, "default-limit", "1g", "default-period", "1s", *AT_ONCE)
    has = lookup.has(direction)
    section.add("http-request", f"set-var-fmt({variable})", lookup.text(direction), "if", *has)
    section.add("http-request", "set-bandwidth-limit", name, "limit", f"var({variable})", "period", "1s", "if", *has)


def _add_for_clients(section: Section, lookup: Lookup, direction: str, codes: Mapping[str, int]) -> None:
    for number in sorted(set(codes.values())):
        name = f"client-{direction}-{number}"
        limit: tuple[Argument, ...] = ("limit", Value(str(number)), "key", "var(txn.bandwidth_key)", "table", TABLE)
        section.add("filter", f"bwlim-{direction}", name, *limit, *AT_ONCE)
        for code in sorted(code for code, each in codes.items() if each == number):
            section.add("http-request", "set-bandwidth-limit", name, "if", *lookup.holds(code))


def add_table(document: Document, fronts: Iterable[LoadBalancer]) -> None:
    """Where bytes of clients are counted, if any are limited."""
    said = [rules.bandwidth for front in fronts for rules in rules_followed(front) if rules.bandwidth]
    if any(each.per != REQUEST for each in said):
        section = document.section("backend", TABLE, "from", HTTP)
        stored = "bytes_in_rate(1s),bytes_out_rate(1s)"
        section.add("stick-table", "type", "string", "len", "80", "size", "100k", "expire", "10s", "store", stored)
