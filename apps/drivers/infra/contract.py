"""The infrastructure border: what every driver that plans and applies a stack promises.

Two implementations stand behind it, chosen in `registry.py`: the real binary (`terraform.py`; `terraform` or `tofu`)
and an honest fake in memory (`memory.py`). Drivers know the world and nothing of Django.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


class InfraError(Exception):
    """Terraform did not do what it was asked; `message` is a sentence for operators, `output` its own words.

    `address` names the resource where Terraform named one.
    """

    def __init__(self, message: str, *, output: str = "", address: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.output = output
        self.address = address


class Locked(InfraError):
    """Somebody else holds the state's lock: try again later."""


class Stopped(InfraError):
    """The caller asked to stop, or lost its right to go on; what was begun is in the state."""


class StalePlan(InfraError):
    """The state has changed since the plan was made: plan again."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The HTTP state backend of one stack; `password` is good for one run only and never written to a file."""

    address: str
    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Import:
    """Something that stands in the cloud and that the state is to know from now on as this address."""

    address: str
    id: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """A private directory of one run, which the driver fills and the caller removes.

    `document` is the StackDocument as JSON data; `secrets` are the values of its variables, `credentials` the reference
    to what opens the cloud (credentials.py). Neither of them is ever written to a file or said in an error.
    `mark` becomes a tag of all that is made (AWS); a plan takes `imports` over, but not one that destroys.
    """

    directory: Path
    backend: Backend
    document: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    credentials: str = ""
    mark: str = ""
    imports: tuple[Import, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One resource that a plan touches; `actions` as Terraform says them (`create`, `update`, `delete`; two: replaced).

    `before` and `after` are attributes with sensitive ones replaced by a word; `replaced_by` are the paths that force
    it. What is imported says so; where nothing else becomes of it, `actions` is `no-op`.
    """

    address: str
    type: str
    actions: tuple[str, ...]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    replaced_by: tuple[str, ...] = ()
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What `terraform plan` found: `file` are the bytes of the saved plan that alone may be applied.

    `drift` are changes that somebody else made to the cloud since the last apply. `names` say to which resource what
    the cloud calls something belongs (an ARN, a self link → `aws_lb.lb_3`). `outputs` are those that are known already
    and no secret; `outputs_change` that an apply would change some even where it changes no resource.
    """

    file: bytes
    changes: tuple[PlannedChange, ...] = ()
    drift: tuple[PlannedChange, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    outputs_change: bool = False
    terraform_version: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.changes and not self.outputs_change


@dataclass(frozen=True, slots=True)
class Progress:
    """One event while Terraform works; `kind` start, progress, complete, errored, drift or message; seconds so far."""

    kind: str
    address: str = ""
    action: str = ""
    seconds: float = 0.0
    message: str = ""


Heard = Callable[[Progress], None]
MayGoOn = Callable[[], bool]


class InfraDriver(Protocol):
    """One way to plan and apply. `heard` is told every event; when `may_go_on` says no, Terraform is interrupted."""

    def plan(self, workspace: Workspace, *, destroy: bool, heard: Heard, may_go_on: MayGoOn) -> Plan:
        """Initialize, plan, and read the plan. Raises InfraError, Locked, Stopped."""

    def apply(self, workspace: Workspace, plan: bytes, *, heard: Heard, may_go_on: MayGoOn) -> Mapping[str, Any]:
        """Apply exactly this saved plan and answer the outputs. Raises InfraError, Locked, StalePlan, Stopped."""
