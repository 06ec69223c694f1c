"""Writes of status pages: only routes and rules of the account itself, and a name that no other public page has."""

from __future__ import annotations

from apps.accounts.models import Account
from apps.definitions.models import AlertRule, Route, StatusPage
from apps.definitions.shapes.base.writing import copy_plain, write
from apps.definitions.shapes.operations.alert_watches import BUILT_IN, WATCHES
from apps.definitions.shapes.operations.status_page import StatusComponent, StatusPageSpec
from apps.definitions.writing.change_set import ChangeSet


def store_status_page(changes: ChangeSet, owner: Account, row: StatusPage, spec: StatusPageSpec) -> None:
    """The page, when what it names is there."""
    names = {name for component in spec.components for name in component.routes}
    known = set(Route.objects.filter(account=owner, name__in=names).values_list("name", flat=True))
    for position, component in enumerate(spec.components):
        for index, name in enumerate(component.routes):
            if name not in known and ("Route", f"{owner.name}/{name}") not in changes.field_errors.rejected:
                detail = f"There is no route {name} in this account."
                changes.add_error(f"/spec/components/{position}/routes/{index}", "unknown", detail)
    _reject_rules(changes, owner, spec)
    others = StatusPage.objects.filter(name=row.name, public=True).exclude(pk=row.pk)
    if spec.public and others.exists():
        changes.add_error("/spec/public", "taken", "Another public page has this name; make one with another name.")
    changes.field_errors.raise_any()
    copy_plain(spec, row)
    row.account, row.rules = owner, list(spec.rules)
    row.components = [write(StatusComponent, component) for component in spec.components]
    row.save()


def _reject_rules(changes: ChangeSet, owner: Account, spec: StatusPageSpec) -> None:
    """Rules that are not there, and those that say nothing of a pool: they touch no component."""
    own = AlertRule.objects.filter(account=owner, name__in=spec.rules).values_list("name", "watches")
    watched = BUILT_IN | dict(own)
    for index, name in enumerate(spec.rules):
        if ("AlertRule", f"{owner.name}/{name}") in changes.field_errors.rejected:
            continue
        if name not in watched:
            changes.add_error(f"/spec/rules/{index}", "unknown", f"There is no alert rule {name} in this account.")
        elif WATCHES[watched[name]].noun != "pool":
            detail = f"Rule {name} watches no pool, so it touches no component; leave it out."
            changes.add_error(f"/spec/rules/{index}", "not_pool", detail)
