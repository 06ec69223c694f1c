"""After an apply whose good end nobody heard: what stands there that the state does not know.

The beginning of an apply raises a doubt (`StackSync.doubted`), its good end takes it away: a machine that dies with
Terraform on it, a failure, a state that could not be written all leave it. The next plan then asks the cloud first what
carries the stack's mark:

* what the state knows is left alone;
* what the document wants is taken over by that very plan (Terraform's `import`) instead of being made twice;
* what no document wants any more cannot be imported, since Terraform imports into a resource of its document. The page
  of the stack lists it until somebody has deleted it, and each plan looks again.

Attachments of targets and further certificates of a listener are not looked for: to ask for them twice is to have them
once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.core.concurrency.leases import Lease
from apps.drivers.clouds.contract import CloudError, Standing
from apps.drivers.clouds.registry import open_reader
from apps.drivers.infra.contract import Import, InfraError, Stopped
from apps.stacks.cloud.reading import access_of
from apps.stacks.models import StackRun, StackSync
from apps.stacks.review.differences import Words
from apps.stacks.run.heartbeat import Heartbeat
from apps.stacks.state import revision_store
from apps.stacks.state import storage as state
from apps.stacks.state.revision_store import Opened

Resources = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Found:
    """What the state does not know: to be taken over, and what nobody wants any more with its address."""

    imports: tuple[Import, ...] = ()
    unknown: tuple[tuple[Standing, str], ...] = ()


def imports_for(
    lease: Lease[StackSync], run: StackRun, opened: Opened, words: Words, heartbeat: Heartbeat
) -> list[Import]:
    """What the run's plan is to take over; what it cannot is noted for the page of the stack.

    Raises InfraError where the cloud does not answer: to plan without its answer could make things twice; and before a
    destruction, which imports nothing and would leave them behind. Raises Stopped, LeaseLost, Unsealable.
    """
    sync = StackSync.objects.select_related("doubted").get(stack_id=run.stack_id)
    if run.kind == StackRun.Kind.CHECK or not (sync.doubted or sync.unknown):
        return []
    found = _found(run, sync, opened.document["resources"], heartbeat)
    with transaction.atomic():
        sync = lease.lock()
        labels = {each["id"]: each["label"] for each in sync.unknown}
        sync.unknown = [
            _told(each, address, labels.get(each.id) or words.label_of(address)) for each, address in found.unknown
        ]
        sync.save(update_fields=("unknown",))
    if run.kind == StackRun.Kind.DESTROY and found.imports:
        names = ", ".join(dict.fromkeys(words.label_of(each.address) for each in found.imports))
        raise InfraError(
            f"The cloud has resources that the state does not know: {names}. Plan first; the plan imports them."
        )
    return list(found.imports)


def _found(run: StackRun, sync: StackSync, wanted: Resources, heartbeat: Heartbeat) -> Found:
    known, listed = known_to(state.read(run.stack_id)), {each["id"]: each["address"] for each in sync.unknown}
    earlier: Resources = revision_store.open_revision(sync.doubted).document["resources"] if sync.doubted else {}
    kinds = {address.partition(".")[0] for address in (*known.values(), *listed.values())} | set(wanted) | set(earlier)
    try:
        standing = open_reader(access_of(run.stack)).standing(sync.mark, kinds)
        return compare(_while_it_may(standing, heartbeat), wanted, earlier, known, listed)
    except CloudError as error:
        raise InfraError(f"Spillway cannot tell what an earlier run left in the cloud. {error.message}") from None


def _while_it_may(standing: Iterable[Standing], heartbeat: Heartbeat) -> Iterator[Standing]:
    """A large stack takes a while to read: the lease is kept meanwhile."""
    for each in standing:
        if not heartbeat.may_go_on():
            raise Stopped("Stopped before it started.")
        yield each


def compare(
    standing: Iterable[Standing],
    wanted: Resources,
    earlier: Resources,
    known: Mapping[str, str],
    listed: Mapping[str, str],
) -> Found:
    """What stands there against the document, an `earlier` one, and what the state knows (addresses by id).

    `listed` is what was unknown the last time, in the same form: it stays so while it stands.
    """
    addresses, taken = dict(known), set(known.values())
    imports, unknown = [], []
    for each in standing:
        if each.id in known:
            continue
        address = each.address or _match(each, addresses, wanted) or _match(each, addresses, earlier)
        address = address or listed.get(each.id, "")
        if not address or (address in taken and not each.address):
            continue  # somebody else's
        addresses[each.id] = address
        if address in taken or not _has(wanted, address):
            unknown.append((each, address))
        else:
            taken.add(address)
            imports.append(Import(address, each.id))
    return Found(tuple(imports), tuple(unknown))


def known_to(kept: state.State | None) -> dict[str, str]:
    """Addresses of all that a state knows, by the cloud's id; those included that are about to be replaced."""
    rows = json.loads(kept.content)["resources"] if kept else []
    return {
        str(instance["attributes"]["id"]): f"{row['type']}.{row['name']}"
        for row in rows
        if row.get("mode") == "managed"
        for instance in row["instances"]
        if (instance.get("attributes") or {}).get("id")
    }


def _match(each: Standing, addresses: Mapping[str, str], resources: Resources) -> str:
    """The resource that it is by its facts, below the same parent; empty for none."""
    if not each.facts or (each.parent and each.parent not in addresses):
        return ""
    below = f"${{{addresses[each.parent]}." if each.parent else ""
    for name, body in resources.get(each.kind, {}).items():
        is_below = not below or any(isinstance(value, str) and value.startswith(below) for value in body.values())
        if is_below and all(body.get(fact) == value for fact, value in each.facts.items()):
            return f"{each.kind}.{name}"
    return ""


def _has(resources: Resources, address: str) -> bool:
    kind, _, name = address.partition(".")
    return name in resources.get(kind, {})


def _told(each: Standing, address: str, label: str) -> dict[str, str]:
    """Plain data, for the page."""
    return {"kind": each.kind, "id": each.id, "address": address, "label": label}
