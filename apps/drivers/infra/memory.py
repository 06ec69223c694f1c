"""The honest fake: a cloud in this process for each state, planned and applied as Terraform would.

`memory_cloud(address)` is the cloud behind the state at that address; its fields are what a test may change. A plan is
JSON and good for the state from which it was made alone; an apply works on one resource after the other and may be
stopped, fail or die (`Died`) at any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.drivers.infra.contract import (
    Heard,
    InfraError,
    Locked,
    MayGoOn,
    Plan,
    PlannedChange,
    Progress,
    StalePlan,
    Stopped,
    Workspace,
)
from apps.drivers.infra.reading import UNKNOWN

_REFERENCE = re.compile(r"([a-z0-9_]+\.[A-Za-z0-9_-]+)\.([a-z0-9_]+)")
_TEMPLATE = re.compile(r"\$\{([^}]*)\}")
FORCES_NEW = frozenset({"triggers_replace", "name", "cloud_name"})

Resources = dict[str, dict[str, Any]]


class Died(BaseException):
    """The worker was killed here: nobody catches it, nothing is written down."""


@dataclass
class MemoryCloud:
    """What stands in a cloud and what its state knows.

    `resources` are by address; whoever changes them by hand makes drift against `known`. `failing` says which resource
    cannot be made and why, `dies_at` at which point (`plan`, `apply`, an address) the worker dies, once. With
    `unheard_at` the whole machine dies when the cloud has made that resource and before its state knows: it is `lost`,
    planned again and made `twice`, unless a plan imports it. `applied` counts what was made, changed and deleted.
    """

    resources: Resources = field(default_factory=dict)
    known: Resources = field(default_factory=dict)
    serial: int = 0
    locked: bool = False
    failing: dict[str, str] = field(default_factory=dict)
    dies_at: str = ""
    unheard_at: str = ""
    lost: set[str] = field(default_factory=set)
    twice: list[str] = field(default_factory=list)
    plans: int = 0
    applied: list[tuple[str, str]] = field(default_factory=list)
    during: Callable[[str], None] | None = None

    def passes(self, point: str) -> None:
        """A point at which a worker may die, or something else may happen."""
        if self.during is not None:
            self.during(point)
        if self.dies_at == point:
            self.dies_at = ""
            raise Died(point)


_clouds: dict[str, MemoryCloud] = {}


def memory_cloud(address: str) -> MemoryCloud:
    """The cloud behind the state at this address; there is always one."""
    return _clouds.setdefault(address, MemoryCloud())


def forget_clouds() -> None:
    """Begin from nothing."""
    _clouds.clear()


class MemoryDriver:
    """Plans and applies in memory."""

    def plan(self, workspace: Workspace, *, destroy: bool, heard: Heard, may_go_on: MayGoOn) -> Plan:
        """Compare what the document wants with what the cloud has. Raises Locked, Stopped."""
        cloud = _enter(workspace, may_go_on)
        cloud.plans += 1
        cloud.passes("plan")
        wanted = {} if destroy else _wanted(workspace.document)
        imported = () if destroy else tuple(each.address for each in workspace.imports)
        seen = _seen(cloud, imported)
        drift = tuple(_changes(cloud.known, seen))
        changes = tuple(_changes(seen, wanted, imported))
        touched = {change.address for change in changes}
        heard(Progress("message", message=f"{len(changes)} to do."))
        outputs = {} if destroy else dict(workspace.document.get("outputs") or {})
        body = {"serial": cloud.serial, "wanted": wanted, "outputs": outputs, "imported": imported}
        return Plan(
            file=json.dumps(body).encode(),
            changes=changes,
            drift=tuple(each for each in drift if each.address in touched),
            names={f"arn:{address}": address for address in cloud.resources},
            outputs=_outputs(outputs, wanted),
            terraform_version="1.9.0",
        )

    def apply(self, workspace: Workspace, plan: bytes, *, heard: Heard, may_go_on: MayGoOn) -> Mapping[str, Any]:
        """One resource after the other; each is in the state when the next is begun."""
        cloud = _enter(workspace, may_go_on)
        cloud.passes("apply")
        body = json.loads(plan)
        if body["serial"] != cloud.serial:
            raise StalePlan("Saved plan is stale: the state was changed after the plan was made.")
        cloud.lost -= set(body["imported"])
        for change in list(_changes(_seen(cloud, body["imported"]), body["wanted"])):
            if not may_go_on():
                raise Stopped("Stopped before the end; what was begun was finished.")
            _carry_out(cloud, change, body["wanted"], heard)
        cloud.known = json.loads(json.dumps(_seen(cloud)))
        return _outputs(body["outputs"], cloud.resources)


def _enter(workspace: Workspace, may_go_on: MayGoOn) -> MemoryCloud:
    cloud = memory_cloud(workspace.backend.address)
    if not may_go_on():
        raise Stopped("Stopped before it started.")
    if cloud.locked:
        raise Locked("Error acquiring the state lock: somebody holds it.")
    return cloud


def _carry_out(cloud: MemoryCloud, change: PlannedChange, wanted: Resources, heard: Heard) -> None:
    address, action = change.address, "replace" if len(change.actions) > 1 else change.actions[0]
    heard(Progress("start", address, action))
    if address in cloud.failing:
        heard(Progress("errored", address, action))
        raise InfraError(cloud.failing[address], address=address)
    cloud.applied.append((action, address))
    if address in cloud.lost:
        cloud.lost.remove(address)
        cloud.twice.append(address)
    if action == "delete":
        del cloud.resources[address]
        cloud.known.pop(address, None)
    else:
        cloud.resources[address] = dict(wanted[address])
        if cloud.unheard_at == address:
            cloud.unheard_at = ""
            cloud.lost.add(address)
            raise Died(address)
        cloud.known[address] = dict(wanted[address])
    cloud.serial += 1
    heard(Progress("complete", address, action, seconds=0.1))
    cloud.passes(address)


def _wanted(document: Mapping[str, Any]) -> Resources:
    return {
        f"{kind}.{name}": json.loads(json.dumps(body))
        for kind, named in document["resources"].items()
        for name, body in named.items()
    }


def _seen(cloud: MemoryCloud, imported: Collection[str] = ()) -> Resources:
    """What a plan finds in the cloud: what nobody told the state of is not looked for."""
    return {key: body for key, body in cloud.resources.items() if key not in cloud.lost or key in imported}


def _changes(before: Resources, after: Resources, imported: Collection[str] = ()) -> Iterator[PlannedChange]:
    for address in [*after, *(each for each in before if each not in after)]:
        old, new, kind = before.get(address), after.get(address), address.partition(".")[0]
        if old == new:
            if address in imported:
                yield PlannedChange(address, kind, ("no-op",), old, new, imported=True)
            continue
        if old is None:
            yield PlannedChange(address, kind, ("create",), None, new)
        elif new is None:
            yield PlannedChange(address, kind, ("delete",), old, None)
        else:
            forced = sorted(name for name in FORCES_NEW if old.get(name) != new.get(name))
            actions = ("delete", "create") if forced else ("update",)
            yield PlannedChange(address, kind, actions, old, new, tuple(forced), address in imported)


def _outputs(outputs: Mapping[str, str], resources: Resources) -> dict[str, Any]:
    """What the expressions are worth where they name one attribute, or a list of such."""
    return {name: _value(expression, resources) for name, expression in outputs.items()}


def _value(expression: str, resources: Resources) -> Any:
    inside = _TEMPLATE.fullmatch(expression)
    if inside is None:
        return expression
    found = [_attribute(resources, *each.groups()) for each in _REFERENCE.finditer(inside[1])]
    return found if inside[1].startswith("[") else next(iter(found), UNKNOWN)


def _attribute(resources: Resources, address: str, name: str) -> Any:
    body = resources.get(address, {})
    return body.get("input" if name == "output" else name, f"{address}.{name}")
