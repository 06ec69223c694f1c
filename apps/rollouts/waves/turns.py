"""The turn of a fleet comes when those of earlier stages have proven a change; it passes when they took it back."""

from __future__ import annotations

from django.db import transaction

from apps.fleet.services import request_push
from apps.rollouts.models import Rollout
from apps.rollouts.push import lifecycle
from apps.rollouts.push.claims import Claim, lock
from apps.rollouts.push.states import RolloutState
from apps.rollouts.waves.proving import still_awaited, took_back


def begin_turn(claim: Claim, rollout: Rollout) -> bool:
    """Whether the fleet waits no longer: the first wave begins, or definitions are read again."""
    with transaction.atomic():
        sync = lock(claim)
        rollout.refresh_from_db(fields=("state", "message", "wave", "awaits"))
        if not rollout.waits_for_stage:
            return True  # a person was quicker
        if back := took_back(rollout):
            sync.wanted = rollout.previous
            sync.save(update_fields=("wanted",))
            lifecycle.move(rollout, RolloutState.SUPERSEDED, f"Fleet {back[0]} of an earlier stage took it back.")
            request_push([rollout.fleet])
        elif waited_for := still_awaited(rollout):
            which = f"Fleet {waited_for[0]} of an earlier stage has"
            if len(waited_for) > 1:
                which = f"Fleets {', '.join(waited_for)} of earlier stages have"
            lifecycle.say(rollout, f"{which} not proven it yet.")
            return False
        else:
            rollout.wave, rollout.message = 1, ""
            rollout.save(update_fields=("wave", "message"))
    return True
