"""CHECK: passes of capacity tests; one that opens nothing here is left out, and the test finds its limit closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apps.compiler import grammar
from apps.compiler.checks.examination import Notes
from apps.compiler.model import Pool, Protocol, RunPass


def accepted_passes(notes: Notes, passes: Sequence[RunPass], pools: Mapping[str, Pool]) -> tuple[RunPass, ...]:
    """Those with a digest and a pool of http that is carried here, each digest once: the first one has it."""
    found: dict[str, RunPass] = {}
    for each in passes:
        if notes.ask(each, "digest", grammar.digest, each.digest) and _has_pool(notes, each, pools):
            found.setdefault(each.digest, each)
    return tuple(found.values())


def _has_pool(notes: Notes, test_pass: RunPass, pools: Mapping[str, Pool]) -> bool:
    pool = pools.get(test_pass.pool_id)
    if pool is None:
        notes.quarantine(test_pass, "pool_missing", "Its pool is not served here: stop the test.", "pool_id")
    elif pool.protocol is Protocol.TCP:
        message = "Connections of tcp carry no word: test a pool of http, or a server directly."
        notes.quarantine(test_pass, "pool_tcp", message, "pool_id")
    else:
        return True
    return False
