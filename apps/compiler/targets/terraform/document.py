"""The output for Terraform: resources as plain dicts, before `cdktn` writes them as `cdk.tf.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderNeed:
    """A provider of the document: its `source` (`hashicorp/aws`), the versions that will do, its settings."""

    name: str
    source: str
    version: str
    settings: Attributes


@dataclass(frozen=True, slots=True)
class StackDocument:
    """What a stack must be, as Terraform says it.

    `resources` maps a type to names to attributes and blocks as JSON has them; names come from our ids (`lb_3`), never
    from what people wrote. `variables` are sensitive texts (private keys) whose values never enter the document: they
    travel beside it (`secrets_of`). `outputs` maps names to expressions. `owners` says which object of ours stands
    behind an address (`aws_lb.lb_3` → `lb-3`), so that a plan can be read in our words.
    """

    providers: tuple[ProviderNeed, ...] = ()
    resources: Mapping[str, Mapping[str, Attributes]] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for the subprocess that synthesizes and for the revision store."""
        return {
            "providers": [
                {"name": each.name, "source": each.source, "version": each.version, "settings": dict(each.settings)}
                for each in self.providers
            ],
            "resources": {
                kind: {name: dict(body) for name, body in named.items()} for kind, named in self.resources.items()
            },
            "variables": list(self.variables),
            "outputs": dict(self.outputs),
            "owners": dict(self.owners),
        }

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the document in its stable form."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def terraform_name(object_id: str) -> str:
    """`lb-3` → `lb_3`."""
    return object_id.replace("-", "_")
