"""The verdict on one object for one target: what is refused there, and what works but not as it is written.

Each target has a module `capabilities.py` that finds them; `compile_stack.py` leaves out what is refused and warns of
what is lossy, `report.py` lists both before a load balancer is moved. So the two can never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from apps.compiler.model.shared import Finding


class Target(StrEnum):
    """What can run a load balancer."""

    HAPROXY = "haproxy"
    AWS = "aws"
    GOOGLE = "google"


class Severity(StrEnum):
    """refused: the object is left out there. lossy: it runs, and differs in what the message says."""

    REFUSED = "refused"
    LOSSY = "lossy"


class Named(Protocol):
    """Anything of the model that an incompatibility can be about."""

    @property
    def id(self) -> str: ...

    @property
    def label(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """What a target cannot do for one object.

    `object_id` is a model id (`route-9`), `label` what people call it, `field` where in its document; `message` says
    what is the matter, `remedy` what to do about it.
    """

    target: Target
    severity: Severity
    code: str
    object_id: str
    label: str
    field: str
    message: str
    remedy: str = ""

    @property
    def refused(self) -> bool:
        """Whether the object is left out on this target."""
        return self.severity is Severity.REFUSED

    @property
    def finding(self) -> Finding:
        """The same as the checks say it."""
        message = f"{self.message} {self.remedy}".strip()
        return Finding(self.code, self.object_id, self.label, message, self.field)


def refused(target: Target, thing: Named, code: str, field: str, message: str, remedy: str = "") -> Incompatibility:
    """The object cannot run on the target."""
    return Incompatibility(target, Severity.REFUSED, code, thing.id, thing.label, field, message, remedy)


def lossy(target: Target, thing: Named, code: str, field: str, message: str, remedy: str = "") -> Incompatibility:
    """The object runs on the target, and differs."""
    return Incompatibility(target, Severity.LOSSY, code, thing.id, thing.label, field, message, remedy)
