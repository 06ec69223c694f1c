"""The shape of an AddressPool: CIDR blocks that static IPs are allotted from."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated

from apps.compiler.addresses import overlap
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import PoolBlock
from apps.definitions.shapes.base.shape import SORTED, About, Check, Data, Distinct, Shape, Wrong
from apps.definitions.shapes.base.words import LISTED, ByName, at_most

MISSING = "Name at least one network, such as 203.0.113.0/27."


def _apart(blocks: tuple[str, ...], _: Data) -> None:
    networks, field_errors = [ipaddress.ip_network(block) for block in blocks], []
    for index, one in enumerate(networks):
        if other := next((each for each in networks[:index] if overlap(one, each)), None):
            field_errors.append(
                FieldError(f"/{index}", "overlap", f"This network overlaps {other}; name every address once.")
            )
    if not blocks:
        field_errors.append(FieldError("", "missing", MISSING))
    if field_errors:
        raise Wrong(*field_errors)


@dataclass(frozen=True, slots=True)
class AddressPoolSpec(Shape):
    """Networks that static IPs are allotted from."""

    blocks: Annotated[
        tuple[PoolBlock, ...],
        LISTED,
        at_most(50, "networks in one pool"),
        Distinct(),
        Check(_apart),
        SORTED,
        About("CIDR blocks that do not overlap.", "Networks", None, "203.0.113.0/27", missing=MISSING),
    ]
    region: Annotated[ByName | None, About("Leave empty for addresses in any region.", "Region")] = None
