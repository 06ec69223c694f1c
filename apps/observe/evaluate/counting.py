"""Do the nodes that share limits hear of each other, and do they agree about what was admitted?

Nobody steers by this: HAProxy counts and decides by itself. It is watched so that a person hears of a lost peer before
a limit is exceeded by what the lost one admits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.observe.evaluate.conditions import Reason, Type, Verdict

# Readings are some hundred milliseconds apart: only a difference that is larger than that explains is one.
TOLERATED = 10
TOLERATED_SHARE = 0.25
TICKS = 3


@dataclass(frozen=True, slots=True)
class CountFacts:
    """What one node says: which peers it hears, and what it believes each key admitted in ten seconds."""

    node_id: int
    peers: Mapping[str, bool]
    admitted: Mapping[str, int]


@dataclass(slots=True)
class Counting:
    """How many ticks in a row each node was in doubt; one alone may be a reload or the way of a message."""

    doubts: dict[int, int] = field(default_factory=dict)

    def evaluate(
        self, facts: Mapping[int, CountFacts], names: Mapping[int, str], pools: Mapping[int, str]
    ) -> list[Verdict]:
        """One verdict for each node that was read in this tick and has peers."""
        return [self._evaluate(fact, facts, names, pools) for fact in facts.values() if fact.peers]

    def _evaluate(
        self,
        fact: CountFacts,
        facts: Mapping[int, CountFacts],
        names: Mapping[int, str],
        pools: Mapping[int, str],
    ) -> Verdict:
        lost = sorted(_name(node, names) for node, heard in fact.peers.items() if not heard)
        apart = _differences(fact, facts, names, pools)
        in_doubt = bool(lost or apart)
        self.doubts[fact.node_id] = self.doubts.get(fact.node_id, 0) + 1 if in_doubt else 0
        node = ("node", fact.node_id, Type.COUNTING)
        if lost and self.doubts[fact.node_id] >= TICKS:
            message = f"It exchanges no counters with {', '.join(lost)}: limits are counted without them."
            return Verdict(*node, False, Reason.PEER_LOST, message)
        if apart and self.doubts[fact.node_id] >= TICKS:
            return Verdict(*node, False, Reason.SUMS_DIFFER, apart[0])
        return Verdict(*node, True, Reason.PEERS_AGREE, "It counts together with every other node.")


def _name(node: str, names: Mapping[int, str]) -> str:
    return names.get(int(node.removeprefix("node-")), "a node that is no more")


def _pool(pool: str, pools: Mapping[int, str]) -> str:
    return pools.get(int(pool.removeprefix("pool-")), "a pool that is no more")


def _differences(
    fact: CountFacts, facts: Mapping[int, CountFacts], names: Mapping[int, str], pools: Mapping[int, str]
) -> list[str]:
    """Where the node believes something else of another one than that one itself."""
    found = []
    for key, believed in sorted(fact.admitted.items()):
        pool, owner, *_ = key.split("/")
        other = facts.get(int(owner.removeprefix("node-")))
        if other is None or other.node_id == fact.node_id:
            continue
        itself = other.admitted.get(key, 0)
        if abs(believed - itself) > max(TOLERATED, TOLERATED_SHARE * itself):
            found.append(
                f"It believes that {_name(owner, names)} admitted {believed} requests to {_pool(pool, pools)} "
                f"in ten seconds; {_name(owner, names)} itself counts {itself}."
            )
    return found
