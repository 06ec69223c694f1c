"""What of the definitions does not wait for a rollout: a snapshot of before with the servers and lists of now; pure."""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.questions.withholding import OF_REGIONS


def refreshed(old: Snapshot, new: Snapshot, *, regions: bool = True) -> Snapshot:
    """The old snapshot with the servers, network lists and challenges of authorities that the new one has.

    With `regions` also with its shares and limits of regions, such as those of a drained one. Pools and lists that are
    new, or another account's by now, are left to the rollout that brings them.
    """
    pools = {pool.id: pool for pool in new.pools}
    lists = {each.id: each for front in new.load_balancers for each in front.network_lists}
    return replace(
        old,
        pools=tuple(_pool(pool, pools.get(pool.id), regions=regions) for pool in old.pools),
        load_balancers=tuple(
            replace(front, network_lists=tuple(lists.get(each.id, each) for each in front.network_lists))
            for front in old.load_balancers
        ),
        challenges=old.challenges if old.challenges is None else new.challenges,
    )


def _pool(old: Pool, new: Pool | None, *, regions: bool) -> Pool:
    if new is None or (old.account, old.protocol) != (new.account, new.protocol):
        return old
    names = ("servers", *OF_REGIONS) if regions else ("servers",)
    return replace(old, **{name: getattr(new, name) for name in names})
