"""Before a change is made: what a plan of a stack would hold, and who would have to approve it.

Two documents are compared as two plans would be, in the same words; Terraform is not run and no cloud is asked. What it
would make anew is known from replacements.py. What somebody changed in the cloud by hand cannot be known: a plan can
hold more than is told here, and the policy is asked again when there is one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apps.accounts.actors import Actor
from apps.compiler.compile import Compilation, CompileError, compile_stack
from apps.compiler.differences.snapshots import diff_routes
from apps.compiler.model.shared import Finding
from apps.compiler.targets.terraform.document import StackDocument
from apps.core.secrets.sealing import Unsealable
from apps.definitions.writing.dry_runs.fleet_differences import cut
from apps.definitions.writing.dry_runs.stack_differences import Decision, StackDifference, StackSide
from apps.drivers.infra.contract import PlannedChange
from apps.fleet.models import Stack
from apps.stacks.models import StackSync
from apps.stacks.review import policies, protecting
from apps.stacks.review import replacements as replacing
from apps.stacks.review.differences import REPLACE, Difference, Words, read
from apps.stacks.state import revision_store

Document = Mapping[str, Any]
NOTHING: Document = {"resources": {}, "owners": {}}
# What an id of ours begins with → what people call such an object.
KINDS = {
    "bkd": "backend",
    "crt": "certificate",
    "ip": "static IP",
    "lb": "load balancer",
    "lst": "listener",
    "pool": "pool",
    "rec": "record",
    "route": "route",
    "srv": "server",
    "stk": "stack",
    "zone": "zone",
}
# Resources that hold all routes of a listener, and where: what changes there is told route by route.
MAPS = {"google_compute_url_map": ("host_rule", "path_matcher")}
DONE = {"create": "added", "delete": "deleted", REPLACE: "replaced"}
# Another resource's attribute, as documents name it: ${aws_lb_target_group.bkd_4.arn}; `$${` is a literal.
_REFERENCE = re.compile(r"(?<!\$)\$\{([a-z0-9_]+\.[A-Za-z0-9_-]+)[A-Za-z0-9_.\[\]]*\}")


def preview(actor: Actor, before: StackSide | None, after: StackSide) -> StackDifference:
    """What a plan would hold because of a change from `before` (None: the stack is made) to `after`."""
    target = after.snapshot.cloud.value
    try:
        wanted = compile_stack(after.snapshot)
        present = compile_stack(before.snapshot) if before else None
    except CompileError as error:
        return _uncompilable(actor, after, target, error)
    refused = _new(actor, wanted.left_out, present.left_out if present else ())
    warnings = _new(actor, wanted.warnings, present.warnings if present else ())
    if not actor.is_operator:
        return StackDifference("", target, refused=refused, warnings=warnings)
    labels = (revision_store.labels_in(before.snapshot) if before else {}) | revision_store.labels_in(after.snapshot)
    document = _document(wanted)
    found = compare(_document(present), document, labels)
    actions = Counter(each.action for each in found)
    decision, reason = _decision(actor, after, found, document, labels)
    return StackDifference(
        after.snapshot.label,
        target,
        to_add=actions["create"],
        to_change=actions["update"],
        to_replace=actions[REPLACE],
        to_delete=actions["delete"],
        changes=cut([*sentences(found, labels), *_routes_in_maps(found, before, after, wanted.left_out)]),
        refused=refused,
        warnings=warnings,
        decision=decision,
        reason=reason,
    )


def _uncompilable(actor: Actor, after: StackSide, target: str, error: CompileError) -> StackDifference:
    if not actor.is_operator:
        return StackDifference("", target, refused=_new(actor, error.findings, ()))
    said = f"It does not compile: {error}"
    return StackDifference(after.snapshot.label, target, refused=(said,), decision=Decision.REFUSED, reason=said)


def _document(compilation: Compilation[StackDocument] | None) -> Document:
    return compilation.output.as_json() if compilation else NOTHING


def compare(before: Document, after: Document, labels: Mapping[str, str]) -> list[Difference]:
    """The resources that differ between two documents, as a plan would list them; the order of a list is no change."""
    old, new = revision_store.resources_by_address(before), revision_store.resources_by_address(after)
    words = Words({**before["owners"], **after["owners"]}, labels, {})
    anew = replacing.made_anew(old, new)
    found = []
    for address in dict.fromkeys([*new, *old]):
        was, becomes = _given(old.get(address), new.get(address)), _given(new.get(address))
        follows = becomes is not None and replacing.follows(becomes, anew)
        if was == becomes and not follows and address not in anew:
            continue
        actions: tuple[str, ...] = ("create",) if was is None else ("delete",) if becomes is None else ("update",)
        if address in anew:
            actions = ("delete", "create")
        forced = (anew[address],) if address in anew else ()
        difference = read(PlannedChange(address, address.partition(".")[0], actions, was, becomes, forced), words)
        if difference.details or follows or actions != ("update",):
            found.append(difference)
    return found


def _given(body: Mapping[str, Any] | None, ruling: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
    return None if body is None else replacing.attributes(body, ruling)


def sentences(found: Sequence[Difference], labels: Mapping[str, str]) -> list[str]:
    """What happens to our objects, each thing once: an object can stand behind several resources."""
    owners = {each.address: each.object_id for each in found}
    made: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    changed: dict[str, None] = {}
    for each in found:
        if each.action in DONE:
            made[_title(each), DONE[each.action]][each.type] += 1
        details = [detail.sentence for detail in each.details if not _of_routes(each, detail.path)]
        changed |= {f"{_title(each)}: {_readable(detail, owners, labels)}": None for detail in details}
    return [*(f"{title}: {done} ({_counted(types)})" for (title, done), types in made.items()), *changed]


def _of_routes(difference: Difference, path: str) -> bool:
    return path.startswith(MAPS.get(difference.type, ()))


def _routes_in_maps(
    found: Iterable[Difference], before: StackSide | None, after: StackSide, refused: Iterable[Finding]
) -> list[str]:
    """What changes of routes that have no resource of their own, as it is said of fleets; none that are left out."""
    if not any(_of_routes(each, detail.path) for each in found for detail in each.details):
        return []
    out = {finding.object_id for finding in refused}
    fronts, pools = (before.snapshot.load_balancers, before.snapshot.pools) if before else ((), ())
    changes = diff_routes(fronts, after.snapshot.load_balancers, (*pools, *after.snapshot.pools))
    return [each.sentence for each in changes if each.object_id not in out]


def _title(difference: Difference) -> str:
    prefix = difference.object_id.partition("-")[0]
    return f"{KINDS[prefix]} {difference.label}" if prefix in KINDS else difference.label


def _counted(types: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in types.items())


def _readable(sentence: str, owners: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """References to other resources as what people call the objects behind them; a certificate's text is not said."""
    if "-----BEGIN" in sentence:
        return f"{sentence.partition(':')[0]} replaced"

    def named(match: re.Match[str]) -> str:
        address = match[1]
        owner = owners.get(address) or _owner(address, labels)
        return labels.get(owner, address)

    return _REFERENCE.sub(named, sentence)


def _owner(address: str, labels: Mapping[str, str]) -> str:
    """Names of resources begin with the id of their object: `aws_lb_target_group.bkd_4_lb_1` → `bkd-4`."""
    name = address.partition(".")[2]
    found = re.match(r"([a-z]{2,6})[_-]([0-9]{1,18})", name, re.ASCII)
    owner = f"{found[1]}-{found[2]}" if found else ""
    return owner if owner in labels else ""


def _new(actor: Actor, found: Iterable[Finding], known: Iterable[Finding]) -> tuple[str, ...]:
    """What did not stand there before; customers read what is said of their own routes and pools."""
    stands = set(known)
    fresh = (each for each in found if each not in stands and _may_read(actor, each))
    return tuple(dict.fromkeys(f"{each.label}: {each.message}" for each in fresh))


def _may_read(actor: Actor, finding: Finding) -> bool:
    own = finding.label.startswith(f"{actor.account.name}/")
    return actor.is_operator or (own and finding.object_id.startswith(("route-", "pool-")))


def _decision(
    actor: Actor, after: StackSide, found: Sequence[Difference], wanted: Document, labels: Mapping[str, str]
) -> tuple[Decision, str]:
    """Who would let it be applied, and why. The plan holds what waits already as well, so that is looked at."""
    if not found:
        return Decision.NOTHING, "Nothing would change in the cloud."
    planned = _planned(after, wanted, labels, found)
    protected = {each.id for each in after.snapshot.addresses if each.protected}
    if kept := policies.released(planned, protected):
        return Decision.REFUSED, f"The plan would fail: {protecting.sentence(kept)}"
    losing = Counter(each.action for each in planned if each.action in policies.LOSING)
    remaining = sum(len(named) for named in wanted["resources"].values())
    if policies.approves(after.approval, actor.name, planned, remaining):
        return Decision.POLICY, _why_by_policy(after.approval)
    if after.approval == Stack.Approval.BY_HAND:
        return Decision.PERSON, "Every plan of this stack needs approval."
    return Decision.PERSON, f"A person must approve it: {_losses(losing)}."


def _losses(losing: Counter[str]) -> str:
    said = (f"{count} resource{'s' * (count != 1)} would be {DONE[action]}" for action, count in sorted(losing.items()))
    return " and ".join(said)


def _why_by_policy(approval: str) -> str:
    if approval == Stack.Approval.AUTOMATIC_SAFE:
        return "The stack's policy approves it, unless the plan finds something else to replace."
    return "The stack's policy approves it."


def _planned(
    after: StackSide, wanted: Document, labels: Mapping[str, str], found: Sequence[Difference]
) -> Sequence[Difference]:
    """All that lies between what the cloud has and what it would have; `found` where it has nothing yet."""
    sync = StackSync.objects.select_related("applied").filter(stack=after.stack_id).first()
    if sync is None or sync.applied is None:
        return found
    try:
        opened = revision_store.open_revision(sync.applied)
    except Unsealable:
        return found
    return compare(opened.document, wanted, {**opened.labels, **labels})


__all__ = ["compare", "preview", "sentences"]
