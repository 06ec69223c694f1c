"""References into another namespace hold where a ReferenceGrant says so; policies that may keep somebody out."""

from __future__ import annotations

import re

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.manifests.known import KNOWN
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.values.fields import mapping
from apps.importing.values.parsing import Path

# Kinds of other projects that attach to routes and keep somebody out.
GUARDS = re.compile(r"security|auth|jwt|oidc|waf|access", re.IGNORECASE)
CLOSED = "The {kind} {name} is not read and may keep somebody out, so the routes that it names answer 500."
REFUSED = "Refused by the cluster as well: no ReferenceGrant in the namespace {namespace} lets {kind} name its {to}."


def is_granted(context: Context, source: Manifest, kind: str, namespace: str, name: str) -> bool:
    """Whether an object may name one of this kind; within its own namespace it always may."""
    if source.namespace == namespace:
        return True
    for grant in context.of_kind("ReferenceGrant"):
        if grant.namespace != namespace:
            continue
        from_at = next(
            (at for at, each in grant.each("spec", "from")
             if each.get("kind") == source.kind and each.get("namespace") == source.namespace
             and each.get("group") == source.group), None
        )  # fmt: skip
        to_at = next(
            (
                at
                for at, each in grant.each("spec", "to")
                if each.get("kind") == kind and not each.get("group") and each.get("name") in (None, "", name)
            ),
            None,
        )
        if from_at and to_at:
            for at in (("kind",), from_at, to_at):
                grant.mapped(at)
            return True
    return False


def refused(source: Manifest, kind: str, namespace: str) -> str:
    """Why such a reference does not hold."""
    return REFUSED.format(namespace=namespace, kind=f"{source.kind} of {source.namespace}", to=kind)


def guards(context: Context) -> dict[tuple[str, str, str], Manifest]:
    """Routes and Gateways (kind, namespace, name) that a policy of a kind that is not read may protect."""
    found = {}
    for manifest in context.manifests:
        if not GUARDS.search(manifest.kind) or manifest.kind in KNOWN:
            continue
        refs = [manifest.at("spec", "targetRef"), *(each for _, each in manifest.each("spec", "targetRefs"))]
        for ref in refs:
            named = mapping(ref)
            if named.get("name"):
                found[str(named.get("kind")), manifest.namespace, str(named["name"])] = manifest
    return found


def closes(route: Manifest, at: Path, guard: Manifest) -> None:
    """Say that requests get 500 for a policy that is not read."""
    route.impossible((*at, "backendRefs"), CLOSED.format(kind=guard.kind, name=guard.name))
    guard.impossible((), CLOSED.format(kind=guard.kind, name=guard.name))
