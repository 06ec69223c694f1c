"""The verdict: a pool that only clouds serve is as well as their own checks say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from apps.core.clock import now
from apps.definitions.models import Backend
from apps.definitions.serving import clouds_alone
from apps.fleet.models import Stack
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from apps.stacks.models import CloudTarget

NAMED = 3


def evaluate_pools(stack: Stack) -> None:
    """Store a verdict for each pool of the stack that no fleet serves, by its targets in every stack."""
    pools = _pools_of(CloudTarget.objects.filter(stack=stack).values_list("object_id", flat=True))
    alone = clouds_alone() & set(pools.values()) if pools else frozenset()
    if not alone:
        return
    names = {f"bkd-{pk}": pool for pk, pool in Backend.objects.filter(pool__in=alone).values_list("pk", "pool_id")}
    targets: dict[int, list[CloudTarget]] = defaultdict(list)
    for target in CloudTarget.objects.filter(object_id__in=names).order_by("address", "port"):
        targets[names[target.object_id]].append(target)
    store_verdicts([_evaluated(pool, found) for pool, found in targets.items()], now())


def _pools_of(object_ids: Iterable[str]) -> dict[int, int]:
    numbers = [int(number) for name in object_ids if (number := name.removeprefix("bkd-")).isdecimal()]
    return dict(Backend.objects.filter(pk__in=numbers).values_list("pk", "pool_id"))


def _evaluated(pool_id: int, targets: list[CloudTarget]) -> Verdict:
    known = [target for target in targets if target.state != "unknown"]
    sick = [target for target in known if target.state != "healthy"]
    status: bool | None = not sick
    if not known:
        status, reason, message = None, Reason.NOT_OBSERVED, "Its clouds have not checked its servers yet."
    elif len(sick) == len(known):
        reason, message = Reason.NO_SERVER_UP, f"No server is healthy in its clouds: {_list(sick)}"
    elif sick:
        reason = Reason.SOME_SERVERS_DOWN
        message = f"{len(sick)} of {len(known)} servers in clouds are not healthy: {_list(sick)}"
    else:
        reason, message = Reason.ALL_SERVERS_UP, f"All servers in clouds are healthy ({len(known)})."
    return Verdict("pool", pool_id, Type.HEALTHY, status, reason, message)


def _list(sick: list[CloudTarget]) -> str:
    more = f" and {len(sick) - NAMED} more" if len(sick) > NAMED else ""
    return ", ".join(f"{each.address} ({each.reason or each.state})" for each in sick[:NAMED]) + f"{more}."
