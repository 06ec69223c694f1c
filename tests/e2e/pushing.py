"""What a worker and the sweeps behind it do with a push: a node that had no time for it is asked again."""

from __future__ import annotations

import time

from apps.fleet.models import Fleet
from apps.rollouts.models import Rollout
from apps.rollouts.push.states import TERMINAL, RolloutState
from apps.rollouts.services import reconcile_fleet

PATIENCE_S = 60.0


def push_changes() -> None:
    """Bring the only fleet to what is desired; fails with the words of a node that refuses it or never takes it."""
    fleet, deadline = Fleet.objects.get(), time.monotonic() + PATIENCE_S
    while True:
        assert reconcile_fleet(fleet_id=fleet.pk)
        rollout = Rollout.objects.filter(fleet=fleet).latest("pk")
        if rollout.state == RolloutState.DONE:
            return
        told = [rollout.state, rollout.message, *rollout.steps.values_list("node__name", "state", "message")]
        assert rollout.state not in TERMINAL, told
        assert time.monotonic() < deadline, told
        time.sleep(0.2)
