"""The revision store: revisions and plans are stored sealed, and opened where they are needed."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from django.db.models import Max

from apps.compiler.compile import Compilation
from apps.compiler.model.shared import Finding
from apps.compiler.model.stack import CloudBackend, CloudPool, StackSnapshot
from apps.compiler.targets.terraform.document import StackDocument
from apps.core.secrets.sealing import seal, unseal
from apps.stacks.models import StackRevision, StackRun, StackSync
from apps.stacks.review.differences import Difference, Words, difference_from_json

KEPT = 100


@dataclass(frozen=True, slots=True)
class Opened:
    """A revision's document as JSON data, how people call the objects behind it, the values of its variables."""

    document: Mapping[str, Any]
    labels: Mapping[str, str]
    secrets: Mapping[str, str]


def digest_of(compilation: Compilation[StackDocument], secrets: Mapping[str, str]) -> str:
    """SHA-256 (hex) of all that a cloud would be given."""
    asked = f"{compilation.output.digest} {json.dumps(secrets, sort_keys=True)}"
    return hashlib.sha256(asked.encode()).hexdigest()


def store(
    *,
    stack_id: int,
    generation: int,
    compilation: Compilation[StackDocument],
    secrets: Mapping[str, str],
    labels: Mapping[str, str],
    summary: str,
    actor: str,
) -> StackRevision:
    """The next number of the stack; call it while the stack is claimed and its row locked."""
    last = StackRevision.objects.filter(stack_id=stack_id).aggregate(last=Max("number"))["last"] or 0
    body = {"document": compilation.output.as_json(), "labels": dict(labels)}
    return StackRevision.objects.create(
        stack_id=stack_id,
        number=last + 1,
        generation=generation,
        digest=digest_of(compilation, secrets),
        document=_sealed(body),
        secrets=_sealed(dict(secrets)),
        summary=summary[:400],
        actor=actor[:150],
        refused=[_finding(found) for found in compilation.left_out],
        warnings=[_finding(found) for found in compilation.warnings],
    )


def open_revision(revision: StackRevision) -> Opened:
    """What stands in a revision. Raises Unsealable."""
    body = _opened(revision.document)
    return Opened(body["document"], body["labels"], _opened(revision.secrets))


def resources_by_address(document: Mapping[str, Any]) -> dict[str, Any]:
    """The resources of a document (as JSON) by Terraform's address of them; none where there is no document."""
    resources = document.get("resources") or {}
    return {f"{kind}.{name}": body for kind, named in resources.items() for name, body in named.items()}


def words_for(run: StackRun, opened: Opened) -> Words:
    """How the run's resources are called, those included that stand already and are not wanted any more."""
    syncs = StackSync.objects.filter(stack_id=run.stack_id).values_list("applied", "doubted")
    stand = StackRevision.objects.filter(pk__in={pk for row in syncs for pk in row if pk} - {run.revision_id})
    earlier = [open_revision(row) for row in stand]
    owners = {key: value for each in (*earlier, opened) for key, value in each.document["owners"].items()}
    labels = {key: value for each in (*earlier, opened) for key, value in each.labels.items()}
    return Words(owners, labels, {})


def seal_plan(changes: Sequence[Difference], drift: Sequence[Difference]) -> bytes:
    """The plan in our words, for the row."""
    return _sealed({"changes": [each.as_json() for each in changes], "drift": [each.as_json() for each in drift]})


def changes_of(run: StackRun) -> list[Difference]:
    """What the run's plan would do; empty before it is planned. Raises Unsealable."""
    return _differences(run, "changes")


def drift_of(run: StackRun) -> list[Difference]:
    """What somebody else changed, as the run found it. Raises Unsealable."""
    return _differences(run, "drift")


def _differences(run: StackRun, which: str) -> list[Difference]:
    return [difference_from_json(row) for row in _opened(run.plan)[which]] if run.plan else []


def prune(stack_id: int) -> None:
    """Forget all but the last revisions of the stack that nothing points to, and their runs with them."""
    last = StackRevision.objects.filter(stack_id=stack_id).aggregate(last=Max("number"))["last"] or 0
    rows = StackSync.objects.filter(stack_id=stack_id).values_list("wanted", "applied", "doubted")
    used = {pk for row in rows for pk in row if pk}
    busy = StackRun.objects.filter(stack_id=stack_id, finished_at=None).values("revision_id")
    old = StackRevision.objects.filter(stack_id=stack_id, number__lte=last - KEPT)
    old.exclude(pk__in=used).exclude(pk__in=busy).delete()


def labels_in(snapshot: StackSnapshot) -> dict[str, str]:
    """How people call each object of a snapshot, by its id."""
    found: dict[str, str] = {}
    _collect(snapshot, found)
    return found


def _collect(thing: Any, found: dict[str, str]) -> None:
    if isinstance(thing, tuple):
        for each in thing:
            _collect(each, found)
    elif is_dataclass(thing):
        name, label = getattr(thing, "id", ""), getattr(thing, "label", "")
        if name and label:
            found.setdefault(str(name), str(label))
        if isinstance(thing, CloudPool):
            found.update({each.id: _label_of_backend(thing, each) for each in thing.backends})
        for each in fields(thing):
            _collect(getattr(thing, each.name), found)


def _label_of_backend(pool: CloudPool, backend: CloudBackend) -> str:
    return f"{pool.label} in {backend.region}"


def _finding(found: Finding) -> dict[str, str]:
    return {"code": found.code, "object_id": found.object_id, "label": found.label, "message": found.message}


def _sealed(body: Any) -> bytes:
    return seal(zlib.compress(json.dumps(body, sort_keys=True).encode(), level=3))


def _opened(sealed: bytes | memoryview) -> Any:
    return json.loads(zlib.decompress(unseal(sealed)))
