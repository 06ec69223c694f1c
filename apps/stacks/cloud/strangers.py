"""The look for drift: what somebody added by hand to what the stack made.

Terraform compares its own resources alone: a rule before ours, a port that is opened, a server among ours are no
difference to it. They are told and never deleted: Terraform alone writes, and it does not know them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from apps.drivers.clouds.contract import CloudError, Stranger, target_id
from apps.drivers.clouds.registry import open_reader
from apps.stacks.cloud.reading import access_of
from apps.stacks.models import StackRun
from apps.stacks.review.differences import Words
from apps.stacks.run import orphans as finding
from apps.stacks.state import storage as state

SHOWN = 3
ATTACHMENT = "aws_lb_target_group_attachment"
Told = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Additions:
    """What was added, as plain data for the row; `error` says why it is not known."""

    found: tuple[dict[str, str], ...] = ()
    error: str = ""


def look(run: StackRun, words: Words) -> Additions:
    """Ask the cloud for what stands below what is ours. One that does not answer leaves the question open."""
    kept = state.read(run.stack_id)
    if kept is None:
        return Additions()
    addresses = finding.known_to(kept)
    try:
        strangers = list(open_reader(access_of(run.stack)).strangers({*addresses, *_targets(kept)}))
    except CloudError as error:
        return Additions(error=f"It is unknown what was added manually. {error.message}")
    return Additions(tuple(_told(each, words.label_of(addresses.get(each.parent, ""))) for each in strangers))


def sentence(added: Iterable[Told]) -> str:
    """`Somebody added to front: rule 7 (path-pattern), tcp 22 from 0.0.0.0/0.`; empty for nothing."""
    found = [f"{each['message']} to {each['label']}" if each["label"] else each["message"] for each in added]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return (
        (f"Someone added {', '.join(found[:SHOWN])}{more} in the cloud: delete it there, or define it here.")
        if found
        else ""
    )


def _told(each: Stranger, label: str) -> dict[str, str]:
    return {"kind": each.kind, "id": each.id, "label": label, "message": each.message}


def _targets(kept: state.State) -> Iterator[str]:
    for row in json.loads(kept.content)["resources"]:
        if row.get("type") == ATTACHMENT:
            for each in _attributes(row["instances"]):
                yield target_id(str(each["target_group_arn"]), str(each["target_id"]), int(str(each["port"] or 0)))


def _attributes(instances: Sequence[Mapping[str, Mapping[str, object]]]) -> Iterator[Mapping[str, object]]:
    return (each["attributes"] for each in instances if each.get("attributes"))
