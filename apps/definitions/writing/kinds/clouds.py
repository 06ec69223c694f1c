"""Writes of clouds: accounts at them, and stacks: one account in one of its regions."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.accounts.models import Account
from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import Cloud
from apps.core.errors import Conflict, Invalid
from apps.definitions.reading.outside import called_url
from apps.definitions.shapes.base.writing import copy_plain, write
from apps.definitions.shapes.clouds.cloud_account import CloudAccountSpec
from apps.definitions.shapes.clouds.stack import GLOBAL, NetworkSpec, StackSpec, is_vpc_id
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.load_balancers import missing_network
from apps.fleet.models import CloudAccount, Region, Stack

UNKNOWN_SHOWN = 5


def store_cloud_account(changes: ChangeSet, owner: Account, row: CloudAccount, spec: CloudAccountSpec) -> None:
    """Where credentials are kept, and whose they are; what stands there already stays there."""
    if row.pk is not None and row.stacks.exists():
        for field in ("cloud", "project"):
            if getattr(row, field) != getattr(spec, field):
                detail = f"This account has stacks, so its {field} cannot change. Create another cloud account."
                changes.add_error(f"/spec/{field}", "in_use", detail)
    if spec.endpoint_url and not (settings.DEVELOPMENT and spec.endpoint_url.startswith("memory:")):
        try:
            called_url(spec.endpoint_url)
        except GrammarError as error:
            changes.add_error("/spec/endpoint_url", error.code, error.message)
    changes.field_errors.raise_any()
    row.account = owner
    copy_plain(spec, row)
    row.save()
    changes.lookups.remember(row, "CloudAccount", row.name)
    changes.mark_affected(row)


def store_stack(changes: ChangeSet, owner: Account, row: Stack, spec: StackSpec) -> None:
    """One cloud account in one region; a stack stays there, and keeps a network for its load balancers to stand in."""
    account = changes.named(CloudAccount, spec.cloud_account, "/spec/cloud_account")
    region = changes.named(Region, spec.region, "/spec/region")
    for name, _ in spec.network.zones:
        changes.named(Region, name, f"/spec/network/zones/{name}")
    if account:
        _expect_of_cloud(changes, Cloud(account.cloud), spec)
    if row.pk is not None:
        _reject_move(changes, row, account, spec)
    if changes.field_errors or account is None:
        raise Invalid(changes.field_errors.drain())
    row.account, row.cloud_account, row.region = owner, account, region
    row.network = write(NetworkSpec, spec.network)
    copy_plain(spec, row)
    if row.pk is not None and row.load_balancers.exists() and (missing := missing_network(row)):
        changes.add_error("/spec/network", "in_use", f"This stack has load balancers; it {missing}.")
        raise Invalid(changes.field_errors.drain())
    row.save()
    changes.lookups.remember(row, "Stack", row.name)
    changes.mark_affected(row)


def _expect_of_cloud(changes: ChangeSet, cloud: Cloud, spec: StackSpec) -> None:
    """Errors of what the other cloud has."""
    if cloud is Cloud.GOOGLE:
        _expect_google(changes, spec)
        return
    if spec.cloud_region == GLOBAL:
        changes.add_error("/spec/cloud_region", "cloud", "AWS has no region global; name one such as eu-central-1.")
    if spec.region is None:
        changes.add_error("/spec/region", "missing", "Fill in the Spillway region that this cloud region belongs to.")
    if spec.network.vpc and not is_vpc_id(spec.network.vpc):
        changes.add_error(
            "/spec/network/vpc", "cloud", "On AWS write the id of the VPC, such as vpc-0a1b2c3d4e5f60718."
        )
    if spec.network.zones:
        changes.add_error("/spec/network/zones", "cloud", "AWS needs no zones: each subnet is in one; leave this out.")


def _expect_google(changes: ChangeSet, spec: StackSpec) -> None:
    if spec.cloud_region != GLOBAL:
        detail = "Google's load balancers are global: write global; zones say where the endpoints of each region are."
        changes.add_error("/spec/cloud_region", "cloud", detail)
    if spec.region is not None:
        changes.add_error("/spec/region", "cloud", "A stack on Google covers all regions; leave this out.")
    if is_vpc_id(spec.network.vpc):
        changes.add_error("/spec/network/vpc", "cloud", "On Google write the name of the network, or its self link.")
    for field in ("subnets", "log_bucket", "vpc_networks"):
        if getattr(spec.network, field):
            changes.add_error(f"/spec/network/{field}", "cloud", f"Google needs no {field} here; leave this out.")


def _reject_move(changes: ChangeSet, row: Stack, account: CloudAccount | None, spec: StackSpec) -> None:
    """What a stack has made stands in its place, and its state says so."""
    if account and row.cloud_account_id != account.pk:
        changes.add_error(
            "/spec/cloud_account", "in_use", "A stack cannot move to another cloud account; create another stack there."
        )
    if row.cloud_region != spec.cloud_region:
        changes.add_error(
            "/spec/cloud_region", "in_use", "A stack cannot move to another cloud region; create another stack there."
        )


def reject_forgetting(_changes: ChangeSet, row: Stack) -> None:
    """Raise Conflict while something of the stack stands in its cloud, or may: its rows go with it, which alone know.

    What has to happen first is said, all of it. A stack that never applied anything goes, and one that was destroyed.
    """
    run, lock = row.runs.filter(finished_at=None).first(), getattr(row, "state_lock", None)
    newest, sync = row.states.order_by("-number").first(), getattr(row, "sync", None)
    reasons = []
    if run:
        reasons.append(f"Run {run.pk} is {run.state}: wait until it ends, or discard or cancel it.")
    if lock:
        reasons.append(f"{lock.held_by} holds the lock of its state: wait, or force-unlock it once nothing runs.")
    if newest and newest.resources:
        reasons.append(f"Its cloud still has {newest.resources} resources: destroy them first.")
    if sync:
        reasons += _doubts(sync)
    if reasons:
        raise Conflict(f"Stack {row.name} cannot be deleted yet. {' '.join(reasons)}")


def _doubts(sync: Any) -> list[str]:
    """What its cloud may have that its state does not know; a plan asks the cloud."""
    found = []
    if sync.doubted_id is not None:
        found.append("The result of its last apply is unknown: plan the stack to find out what exists.")
    if sync.unknown:
        names = ", ".join(dict.fromkeys(each["label"] for each in sync.unknown[:UNKNOWN_SHOWN]))
        more = len(sync.unknown) - UNKNOWN_SHOWN
        names += f" and {more} more" if more > 0 else ""
        found.append(f"Its state does not contain {names}. Delete this in the cloud, then plan the stack.")
    return found
