"""The search: which of the changed objects a node refuses, asked of that very node, in a bounded number of tries.

An agent is asked to check, as far as it had come with what it refused. What only the switch tells it is asked by
pushing: what it takes is a part of what was wanted and good, so it may run until the search is over. Where HAProxy
names nobody, the changed objects are halved until one is left.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

from apps.compiler.compile import CompileError, compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.questions.withholding import withhold
from apps.definitions.previewing.node_words import in_words
from apps.drivers.proxy.contract import CHECKED, NodeState, Refused
from apps.drivers.proxy.registry import open_driver
from apps.rollouts.culprits import quarantine
from apps.rollouts.culprits.blaming import owners_named
from apps.rollouts.culprits.quarantine import Culprits
from apps.rollouts.models import Revision, Rollout
from apps.rollouts.push import claims, lifecycle, revision_store
from apps.rollouts.push.claims import Claim
from apps.rollouts.push.pushing import Job

logger = logging.getLogger(__name__)

MOST_TRIES = 24
NOT_NAMED = (
    "A node rejects every configuration with this object and accepts it without the object; HAProxy gives no reason."
)


class _Inconclusive(Exception):
    """The node was not to be asked, or too often."""


def find_culprits(claim: Claim, rollout: Rollout, job: Job, refusal: Refused, good: Revision | None) -> Culprits | None:
    """Who has to be left out so that the node of `job` takes the rest; None when that would not help."""
    search = _Search(claim, rollout, job, good, refusal.stage)
    try:
        found = search.named(refusal) or dict.fromkeys(search.halved(), NOT_NAMED)
    except (_Inconclusive, CompileError) as error:
        logger.warning("rollout %s: whom the refusal is about was not found: %s", rollout.pk, error)
        return None
    return search.culprits(found) if found else None


class _Search:
    def __init__(self, claim: Claim, rollout: Rollout, job: Job, good: Revision | None, stage: str) -> None:
        self._stage = stage
        self._claim, self._rollout, self._job, self._tries = claim, rollout, job, 0
        self._snapshot = revision_store.snapshot_of(rollout.revision_id, rollout.revision.digest)
        self._bundle = revision_store.bundle_of(rollout.revision_id, rollout.revision.digest)
        self._good: Snapshot | None = revision_store.snapshot_of(good.pk, good.digest) if good else None
        self._suspects = quarantine.new_suspects(claim.fleet_id, self._snapshot, self._good)

    def culprits(self, found: Mapping[str, str]) -> Culprits:
        """With what else changed of an account that does this again and again."""
        return quarantine.with_the_rest(self._claim.fleet_id, found, self._suspects)

    def named(self, refusal: Refused) -> dict[str, str]:
        """Those that HAProxy names, one after the other, until the node takes the rest; empty when it never does."""
        found: dict[str, str] = {}
        said: Refused | None = refusal
        while said is not None:
            named = owners_named(said, self._bundle)
            more = {key: self._complaint(key, named[key]) for key in named if key in self._suspects}
            if more.keys() <= found.keys():
                return {}
            found |= more
            said = self._ask(found)
        return found

    def _complaint(self, key: str, said: str) -> str:
        """HAProxy's words for the owner of the object, without names of others."""
        return f"HAProxy rejects this: {in_words(said, self._suspects[key].account)}"

    def halved(self) -> list[str]:
        """The one object without which the node takes the rest; empty when it refuses what has changed for nobody."""
        rest = list(self._suspects)
        if not rest or self._ask(rest) is not None:
            return []
        good: list[str] = []
        while len(rest) > 1:
            half = rest[: len(rest) // 2]
            if self._ask([key for key in self._suspects if key not in good and key not in half]) is None:
                good, rest = good + half, rest[len(half) :]
            else:
                rest = half
        return rest

    def _ask(self, out: Collection[str]) -> Refused | None:
        """What the node says against everything without `out`; None when it takes that."""
        if self._tries == MOST_TRIES:
            raise _Inconclusive(f"{MOST_TRIES} tries were not enough")
        self._tries += 1
        self._bundle = compile_snapshot(withhold(self._snapshot, out, self._good)).output
        generation = lifecycle.bump_generation(self._claim, self._rollout.generation, self._rollout)
        answer = self._put(generation)
        if isinstance(answer, Refused):
            return answer
        if answer.generation == generation:
            lifecycle.note_taken(self._rollout, self._job.node_id)
        return None

    def _put(self, generation: int) -> NodeState | Refused:
        """The whole bundle, also where the node runs it already: then what it refused is no trouble of its own."""
        driver = open_driver(self._job.target)
        ask = partial(driver.check_bundle, stage=self._stage) if self._stage in CHECKED else driver.push_bundle
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(ask, self._bundle, generation)
            while not wait([asked], timeout=claims.RENEW_SECONDS).done:
                claims.renew(self._claim)
        error = asked.exception()
        if error is None:
            return asked.result()
        if isinstance(error, Refused):
            return error
        raise _Inconclusive(f"{self._job.target.name}: {error}")
