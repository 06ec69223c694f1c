"""DEFINE, inside a write: no account gets more routes, pools, certificates and hostnames than its quotas allow."""

from __future__ import annotations

from collections.abc import Mapping

from apps.accounts.models import Account, Hostname
from apps.accounts.quotas import fault_over, lock_quotas
from apps.core.errors import Invalid
from apps.definitions.models import Certificate, Pool, Route
from apps.definitions.services.work import Work

COUNTED = {"routes": Route, "pools": Pool, "certificates": Certificate}
GROWING = {"Route", "Pool", "Certificate", "Hostname"}


def counts(account: Account) -> Mapping[str, int]:
    """How much of each of these quotas the account uses."""
    found = {name: model._default_manager.filter(account=account).count() for name, model in COUNTED.items()}
    return found | {"hostnames": Hostname.objects.filter(account=account, released_at=None).count()}


def expect_growth(work: Work, kind: str, owner: Account) -> None:
    """Before the first object of an account is stored: remember what it has, so that only growth is refused."""
    if kind in GROWING and not owner.is_operator and owner.pk not in work.grown:
        work.once(("counts", owner.pk), lambda: counts(owner))
        work.grown[owner.pk] = owner


def refuse_over_quota(work: Work) -> None:
    """In the end: Invalid for every account that has more than before, and more than it may.

    Counted once per transaction, after deletions: a document may replace a thousand routes by a thousand others, and
    an account whose quota was lowered can still edit what it has.
    """
    if not work.grown:
        return
    lock_quotas(*work.grown.values())
    faults = []
    for owner in work.grown.values():
        before = work.once(("counts", owner.pk), dict)
        for name, count in counts(owner).items():
            if count > before[name] and (fault := fault_over(owner, name, count)):
                faults.append(fault)
    if faults:
        raise Invalid(faults)
