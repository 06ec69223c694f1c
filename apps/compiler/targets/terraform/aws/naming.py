"""COMPILE for AWS, tags: by them a reader of the cloud knows what is ours."""

from __future__ import annotations

from apps.compiler.targets.terraform.expressions import literal


def tags(object_id: str, account: str) -> dict[str, str]:
    """The tags of one resource; that of the stack comes from the provider's defaults."""
    return {"spillway-object": object_id, "spillway-account": literal(account)}
