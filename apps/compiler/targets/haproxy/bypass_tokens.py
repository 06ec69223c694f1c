"""Requests of a running capacity test stay local although their pool's limit is reached.

Otherwise a test could never find more than the limit that is set already. The generator shows a token in
`X-Spillway-Test`; `maps/tests.map` has its SHA-256 and the one pool that it opens, so that who reads the map cannot
make the token, and a test begins and ends without a reload. A pool whose servers are down, or that is drained, stays
closed. Requests with a bypass token count like all others: they count in the limit, and it is real traffic
that moves on to the next region. The token is dropped before any server, any other region or any log sees it.

Connections of tcp carry no header, so limits of tcp pools hold for tests as well. Overflow from other regions
arrives on ports of its own, where no bypass token is known.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Snapshot
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.overflow.admission import Rules, equals, no
from apps.compiler.targets.haproxy.writer import Section

RUNS_MAP = "maps/tests.map"
HEADER = "x-spillway-test"


def bypass_map(snapshot: Snapshot) -> dict[str, Entries]:
    """SHA-256 in hex, lower case → the pool that it opens."""
    return {RUNS_MAP: {each.digest: each.pool_id for each in snapshot.bypass_tokens}}


def add_recognition(section: Section) -> None:
    """`txn.bypass` is the pool that the bypass token opens; without the header nothing is computed or looked up."""
    known = f"req.fhdr({HEADER}),sha2(256),hex,lower,map_str({RUNS_MAP})"
    section.add("http-request", "set-var(txn.bypass)", known)


def add_exemption(rules: Rules) -> None:
    """A request with a bypass token for its pool forgets that the limit is reached, and nothing else."""
    opens = ("{", "var(txn.bypass),strcmp(txn.pool)", "-m", "int", "eq", "0", "}")
    closed = (*no(equals("why", "down")), *no(equals("why", "drained")))
    rules.add("unset-var(txn.why)", given=(*opens, *closed))
