"""Tags for AWS: by them a reader of the cloud knows what is ours."""

from __future__ import annotations

from apps.compiler.targets.terraform.draft import Draft
from apps.compiler.targets.terraform.expressions import literal

# What a resource says of itself to whoever looks for it in the cloud: its address, and the state that knows it.
RESOURCE, MARK = "spillway-resource", "spillway-state"
# A zone gets its tags a while after it was made: until then its comment says whose it is.
ZONE_COMMENT = "Kept by Spillway as "


def tags(object_id: str, account: str) -> dict[str, str]:
    """The tags of one resource; that of the stack comes from the provider's defaults."""
    return {"spillway-object": object_id, "spillway-account": literal(account)}


def name_resources(draft: Draft) -> None:
    """Let every resource that carries tags say its own address, so that one that no state knows can be taken over."""
    for kind, named in draft.resources.items():
        for name, body in named.items():
            if "tags" in body:
                body["tags"] = {**body["tags"], RESOURCE: f"{kind}.{name}"}
