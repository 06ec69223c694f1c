"""The draft for Terraform: resources as they are added, each once, each with its owner among our objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apps.compiler.targets.terraform.document import ProviderNeed, StackDocument
from apps.compiler.targets.terraform.expressions import reference


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the draft, to be referred to."""

    type: str
    name: str

    def __getitem__(self, attribute: str) -> str:
        """`resource["arn"]` → `${aws_lb.lb_3.arn}`."""
        return reference(self.type, self.name, attribute)

    @property
    def address(self) -> str:
        """`aws_lb.lb_3`."""
        return f"{self.type}.{self.name}"


@dataclass(slots=True)
class Draft:
    """What has been added so far."""

    resources: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, name: str, owner: str, body: dict[str, Any]) -> Resource:
        """One more resource. Raises ValueError when there is one of this type and name."""
        named = self.resources.setdefault(kind, {})
        if name in named:
            raise ValueError(f"{kind}.{name} is there already.")
        named[name] = body
        resource = Resource(kind, name)
        self.owners[resource.address] = owner
        return resource

    def document(self, provider: ProviderNeed) -> StackDocument:
        """What was added, in a stable order."""
        return StackDocument(
            providers=(provider,),
            resources={kind: dict(sorted(named.items())) for kind, named in sorted(self.resources.items())},
            variables=tuple(sorted(self.variables)),
            outputs=dict(sorted(self.outputs.items())),
            owners=dict(sorted(self.owners.items())),
        )
