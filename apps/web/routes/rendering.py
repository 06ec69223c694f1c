"""What one route becomes on the nodes, as text to read and copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.previewing.preview import preview_route


def rendered_route(actor: Actor, spec: Mapping[str, Any], name: str, *, account: Account) -> dict[str, Any]:
    """`maps`, `config`, `yaml` and `curl` as text and `warnings` as sentences. Raises Invalid."""
    found = preview_route(actor, spec, name, account=account)
    return found | {"maps": "\n".join(found["maps"]), "config": "\n".join(found["config"])}
