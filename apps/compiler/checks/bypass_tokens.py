"""Bypass tokens of capacity tests; what opens nothing here is left out, and the test finds its limit closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apps.compiler import grammar
from apps.compiler.checks.examination import Notes
from apps.compiler.model.fleet import BypassToken, Pool
from apps.compiler.model.shared import Protocol


def accepted_bypass_tokens(
    notes: Notes, tokens: Sequence[BypassToken], pools: Mapping[str, Pool]
) -> tuple[BypassToken, ...]:
    """Those with a digest and a pool of http that is carried here, each digest once: the first one has it."""
    found: dict[str, BypassToken] = {}
    for each in tokens:
        notes.ask(each, "digest", grammar.digest, each.digest)
        _check_pool(notes, each, pools.get(each.pool_id))
        if not notes.is_out(each.id):
            found.setdefault(each.digest, each)
    return tuple(found.values())


def _check_pool(notes: Notes, bypass_token: BypassToken, pool: Pool | None) -> None:
    if pool is None:
        notes.quarantine(bypass_token, "pool_missing", "Its pool is not served here: stop the test.", "pool_id")
    elif pool.protocol is Protocol.TCP:
        message = "TCP connections carry no token: test an http pool, or a server directly."
        notes.quarantine(bypass_token, "pool_tcp", message, "pool_id")
