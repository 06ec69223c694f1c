"""Between two waves: the nodes that have a change are watched; then more get it, or those go back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max

from apps.compiler.questions.withholding import Part
from apps.core.clock import now
from apps.definitions.shapes.base.words import instant_text, read_instant
from apps.fleet.models import Node
from apps.observe.collect.buckets import SHORT
from apps.observe.models import NodeReport
from apps.rollouts.culprits import quarantine
from apps.rollouts.culprits.quarantine import Culprits
from apps.rollouts.models import Rollout, Step
from apps.rollouts.push import lifecycle, revision_store
from apps.rollouts.push.claims import Claim, lock
from apps.rollouts.push.states import RolloutState, StepState
from apps.rollouts.settings import of_later_stages, settings_of
from apps.rollouts.waves import counting
from apps.rollouts.waves.gate import Bounds, Comparison, Counted, regressions

# What a pool did before is read of so much time, and what it does elsewhere of so many nodes.
BEFORE = timedelta(minutes=2)
MOST_OTHERS = 10
# Who does not know how nodes are for so long takes the change back.
PATIENCE = timedelta(minutes=10)
# What was counted in ten seconds is stored a little after they are over.
LATE = timedelta(seconds=2 * SHORT)


def end_wave(claim: Claim, rollout: Rollout) -> bool:
    """Watch the nodes of a wave when all that can be reached have the change; whether anything moved.

    Nodes that cannot be reached get it with the last wave. Where none could, the next node takes their place.
    """
    with transaction.atomic():
        lock(claim)
        rollout.refresh_from_db(fields=("state", "message", "wave", "soaking_since"))
        if rollout.state != RolloutState.PUSHING or rollout.wave >= rollout.waves:
            return False
        ours = Step.objects.filter(rollout=rollout, wave__lte=rollout.wave)
        waiting = list(ours.exclude(state=StepState.DONE).select_related("node__report"))
        if not all(step.is_away for step in waiting):
            return False
        Step.objects.filter(pk__in=[step.pk for step in waiting]).update(wave=rollout.waves)
        if not ours.filter(wave=rollout.wave).exists():
            _call_another(rollout)
            return True
        rollout.soaking_since = rollout.soaking_since or now()
        rollout.save(update_fields=("soaking_since",))
        lifecycle.move(rollout, RolloutState.SOAKING)
    return True


def _call_another(rollout: Rollout) -> None:
    """Another node takes the place of those that are away; without one, the last wave waits for them."""
    rows = Step.objects.filter(rollout=rollout, wave__gt=rollout.wave, state=StepState.WAITING)
    rows = rows.filter(node__report__last_contact_error="").order_by("wave", "node__name")
    if following := rows.first():
        Step.objects.filter(pk=following.pk).update(wave=rollout.wave)
    else:
        rollout.wave = rollout.waves
        rollout.save(update_fields=("wave",))


def decide(claim: Claim, rollout: Rollout) -> bool:
    """Whether the change goes on to the next wave, or back, by now; False while its nodes are still watched."""
    watched = _Watched.of(rollout)
    worse = watched.regressions()
    unknown = watched.unknown()
    over = now() - watched.since
    with transaction.atomic():
        lock(claim)
        rollout.refresh_from_db(fields=("state", "wave", "message", "soaking_since", "gates"))
        if rollout.state != RolloutState.SOAKING or rollout.soaking_since != watched.since:
            return False  # a person was quicker
        if worse:
            _fail(claim, rollout, watched.told(worse), _culprits(rollout, worse))
        elif not watched.ended:
            return False
        elif not unknown:
            _pass(rollout, watched.summary())
        elif over > watched.soak + PATIENCE:
            _fail(claim, rollout, f"{unknown} The change is taken back because nobody knows how it does.", None)
        else:
            if over > watched.soak + LATE:
                lifecycle.say(rollout, unknown)
            return False
    return True


def _pass(rollout: Rollout, said: str) -> None:
    _note(rollout, said, passed=True)
    rollout.wave, rollout.soaking_since, rollout.message = rollout.wave + 1, None, ""
    rollout.save(update_fields=("wave", "soaking_since", "gates"))
    lifecycle.move(rollout, RolloutState.PUSHING)


def _fail(claim: Claim, rollout: Rollout, said: str, culprits: Culprits | None) -> None:
    _note(rollout, said, passed=False)
    rollout.soaking_since = None
    rollout.save(update_fields=("soaking_since", "gates"))
    lifecycle.take_back(claim, rollout, said, culprits)


def _note(rollout: Rollout, said: str, *, passed: bool) -> None:
    gate = {"wave": rollout.wave, "passed": passed, "message": said, "at": instant_text(now())}
    rollout.gates = [*rollout.gates, gate]


@dataclass(frozen=True, slots=True)
class _Watched:
    """The nodes of a wave since they have the change, and others that do not have it.

    The wave began at `began`; all of its nodes have the change `since`. `times` are the whole ten seconds of
    which there may be numbers, `ended` those of them from the end of the soak time on: nothing is decided before.
    """

    rollout: Rollout
    nodes: Mapping[int, str]
    others: Collection[int]
    began: datetime
    since: datetime
    times: Collection[datetime]
    ended: Collection[datetime]
    soak: timedelta
    bounds: Bounds

    @classmethod
    def of(cls, rollout: Rollout) -> _Watched:
        steps = Step.objects.filter(rollout=rollout).select_related("node")
        own = [step for step in steps if step.wave == rollout.wave]
        settings, since = settings_of(rollout.fleet), rollout.soaking_since or now()
        soak = timedelta(seconds=settings.soak_seconds)
        return cls(
            rollout=rollout,
            nodes={step.node_id: step.node.name for step in own},
            others=_without_the_change(rollout, steps)[:MOST_OTHERS],
            began=read_instant(rollout.gates[-1]["at"]) if rollout.gates else rollout.created_at,
            since=since,
            times=counting.buckets_within(since, now()),
            ended=counting.buckets_within(counting.bucket_before(since + soak), now()),
            soak=soak,
            bounds=Bounds(settings.max_error_increase, settings.max_slowdown),
        )

    def regressions(self) -> dict[str, str]:
        """What is worse, by pool (model id)."""
        updated = counting.count_pools(self.nodes, self.times)
        before = counting.count_pools(self.nodes, self._before())
        others = counting.count_pools(self.others, self.times)
        down = self._down()
        compared = {
            pool: Comparison(
                replace(updated.get(pool, Counted()), down=down[0].get(pool)),
                replace(before.get(pool, Counted()), down=down[1].get(pool)),
                replace(others.get(pool, Counted()), down=down[2].get(pool)),
            )
            for pool in updated.keys() | down[0].keys()
        }
        return regressions(compared, self.bounds)

    def _before(self) -> list[datetime]:
        """Not from the time of an earlier rollout, which may have been taken back."""
        began = self.rollout.created_at
        earlier = Rollout.objects.filter(fleet=self.rollout.fleet_id, pk__lt=self.rollout.pk)
        ended = earlier.exclude(finished_at=None).aggregate(last=Max("finished_at"))["last"]
        return counting.buckets_within(max(began - BEFORE, ended or began - BEFORE), began)

    def _down(self) -> tuple[dict[str, bool], dict[str, bool], dict[str, bool]]:
        """Of pools that lost their servers: on these nodes, there before, and on the others.

        That a server is down is told when it happens, which may be as soon as a node has the change, and the last word
        of ten seconds is kept. A pool that rests is told of no more often than once in a minute.
        """
        times = counting.buckets_within(counting.bucket_before(self.began), now())
        suspects = counting.pools_that_went_down(self.nodes, times)
        if not suspects:
            return {}, {}, {}
        lately = counting.buckets_within(self.since - counting.TOLD_EVERY, now())
        return (
            counting.pools_down(self.nodes, times, suspects),
            counting.pools_down(self.nodes, self._before(), suspects),
            counting.pools_down(self.others, lately, suspects),
        )

    def unknown(self) -> str:
        """Why nobody knows how the nodes are; empty where it is known."""
        silent = counting.unmeasured(self.nodes, self.ended)
        rows = NodeReport.objects.filter(node__in=self.nodes).exclude(last_contact_error="")
        silent |= set(rows.values_list("node", flat=True))
        if not silent:
            return ""
        names = ", ".join(sorted(self.nodes[pk] for pk in silent)[:5])
        return f"Nobody knows how {names} {'does' if len(silent) == 1 else 'do'} with the change."

    def told(self, worse: Mapping[str, str]) -> str:
        """What is worse, with the names of pools."""
        snapshot = revision_store.snapshot_of(self.rollout.revision_id, self.rollout.revision.digest)
        labels = {pool.id: pool.label for pool in snapshot.pools}
        return " ".join(f"Pool {labels.get(pool, pool)}: {said}" for pool, said in worse.items())

    def summary(self) -> str:
        """How the nodes of the wave did."""
        requests, failed = counting.requests_of(self.nodes, self.times)
        count = len(self.nodes)
        which = "1 node" if count == 1 else f"{count} nodes"
        if not requests:
            return f"{which} served no request."
        return f"{which} served {requests:,} requests; {100 * failed / requests:.1f} % of the responses were 5xx."


def _without_the_change(rollout: Rollout, steps: Iterable[Step]) -> list[int]:
    """Nodes of later waves; where all nodes of the fleet have the change, those of later stages."""
    ours = [step.node_id for step in steps if step.wave > rollout.wave]
    return ours or list(Node.objects.filter(fleet__in=of_later_stages(rollout.fleet)).values_list("pk", flat=True))


def _culprits(rollout: Rollout, worse: Mapping[str, str]) -> Culprits | None:
    """What changed of the pools that suffer and of the routes to them; None where nothing of theirs did."""
    snapshot = revision_store.snapshot_of(rollout.revision_id, rollout.revision.digest)
    previous = rollout.previous
    good = revision_store.snapshot_of(previous.pk, previous.digest) if previous else None
    changed = quarantine.new_suspects(rollout.fleet_id, snapshot, good)
    found = {key: said for key, part in changed.items() if (said := _said_of(part, worse))}
    return quarantine.with_the_rest(rollout.fleet_id, found, changed) if found else None


def _said_of(part: Part, worse: Mapping[str, str]) -> str:
    """What its owner is told; empty of what leads to none of the pools."""
    leads_to = [each.pool_id for each in getattr(part.thing, "pools", ())] or [part.part_of]
    return " ".join(f"After this change: {worse[pool]}" for pool in leads_to if pool in worse)
