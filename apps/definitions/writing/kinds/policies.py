"""Writes of policies: whose routes they hold for without being named."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.definitions.models import LoadBalancer, Policy
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.traffic.policy import PolicySpec, Rules
from apps.definitions.writing.change_set import ChangeSet


def store_policy(changes: ChangeSet, owner: Account, row: Policy, spec: PolicySpec) -> None:
    """The settings; a load balancer takes defaults of those alone to whom it belongs."""
    wanted = spec.default_for
    pointers = [f"/spec/default_for/load_balancers/{index}" for index in range(len(wanted.load_balancers))]
    fronts = [changes.named(LoadBalancer, *each) for each in zip(wanted.load_balancers, pointers, strict=True)]
    for front, pointer in zip(fronts, pointers, strict=True):
        if front and front.account_id != owner.pk:
            changes.add_error(
                pointer, "not_yours", f"Load balancer {front.name} belongs to another account; leave it out."
            )
    changes.field_errors.raise_any()
    if row.pk is not None:
        changes.mark_affected(row)  # routes that it leaves lose it
    row.account, row.rules = owner, write(Rules, spec.rules)
    row.whole_account, row.hostnames = wanted.account, list(wanted.hostnames)
    row.save()
    row.load_balancers.set([front for front in fronts if front])
    changes.lookups.remember(row, "Policy", owner.name, row.name)
    changes.mark_affected(row)
