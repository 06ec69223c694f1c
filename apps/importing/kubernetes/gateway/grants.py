"""References into another namespace: they hold where a ReferenceGrant of that namespace says so."""

from __future__ import annotations

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.manifests.manifest import Manifest

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
            (at for at, each in grant.each("spec", "to")
             if each.get("kind") == kind and each.get("name") in (None, "", name)), None
        )  # fmt: skip
        if from_at and to_at:
            for at in (("kind",), from_at, to_at):
                grant.mapped(at)
            return True
    return False


def refused(source: Manifest, kind: str, namespace: str) -> str:
    """Why such a reference does not hold."""
    return REFUSED.format(namespace=namespace, kind=f"{source.kind} of {source.namespace}", to=kind)
