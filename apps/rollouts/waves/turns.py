"""The turn of a fleet comes when those of earlier stages have proven a change; it passes when they took it back."""

from __future__ import annotations

from django.db import transaction

from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.rollouts.models import FleetSync, Rollout
from apps.rollouts.push import lifecycle
from apps.rollouts.push.claims import Claim, lock
from apps.rollouts.push.states import RolloutState
from apps.rollouts.waves.proving import at_odds, awaited, last_ended, still_awaited, took_back

OVERTAKEN = "Fleets of earlier stages have proven later changes as well, which go out with this one."


def begin_turn(claim: Claim, rollout: Rollout) -> bool:
    """Whether the fleet waits no longer: the first wave begins, or definitions are read again."""
    with transaction.atomic():
        sync = lock(claim)
        rollout.refresh_from_db(fields=("state", "message", "wave", "awaits"))
        if not rollout.waits_for_stage:
            return True  # a person was quicker
        if back := took_back(rollout):
            _pass_over(sync, rollout, f"Fleet {back[0]} of an earlier stage took it back.")
        elif elsewhere := at_odds(waited_for := still_awaited(rollout)):
            _pass_over(sync, rollout, elsewhere[0])
        elif waited_for:
            names = list(waited_for.values())
            which = f"Fleet {names[0]} of an earlier stage has"
            if len(names) > 1:
                which = f"Fleets {', '.join(names)} of earlier stages have"
            lifecycle.say(rollout, f"{which} not proven it yet.")
            return False
        elif _is_overtaken(sync):
            _pass_over(sync, rollout, OVERTAKEN)
        else:
            rollout.wave, rollout.message = 1, ""
            rollout.save(update_fields=("wave", "message"))
    return True


def _is_overtaken(sync: FleetSync) -> bool:
    """Whether what changed since is proven as well: the earlier stages may never have run the change without that.

    While they have yet to prove something, the fleet does not wait once more: changes that go on coming would keep it
    from ever having its turn.
    """
    fleet = Fleet.objects.get(pk=sync.fleet_id)
    return fleet.desired_generation > sync.compiled_generation and not awaited(last_ended(fleet))


def _pass_over(sync: FleetSync, rollout: Rollout, why: str) -> None:
    """No node gets it; definitions are read again."""
    sync.wanted = rollout.previous
    sync.save(update_fields=("wanted",))
    lifecycle.move(rollout, RolloutState.SUPERSEDED, why)
    request_push([rollout.fleet])
