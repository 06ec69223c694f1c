"""The shape of a StaticIP: an address that stays, on fleets or in a cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.compiler.model.stack import ON_FLEETS, AddressKind
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import StaticAddress
from apps.definitions.shapes.base.shape import About, Data, Shape
from apps.definitions.shapes.base.words import Boolean, ByName, whole, word

KINDS = {
    AddressKind.NODE: "Routed: bound on each node of a fleet",
    AddressKind.VIP: "VIP: VRRP moves it among the nodes of a fleet",
    AddressKind.ANYCAST: "Anycast: every healthy node announces it by BGP",
    AddressKind.ELASTIC: "AWS: Elastic IPs",
    AddressKind.ACCELERATOR: "AWS: Global Accelerator",
    AddressKind.GOOGLE: "Google: a global address",
}
OF_FLEETS = tuple(kind.value for kind in KINDS if kind in ON_FLEETS)
OF_CLOUDS = tuple(kind.value for kind in KINDS if kind not in ON_FLEETS)


@dataclass(frozen=True, slots=True)
class StaticIPSpec(Shape):
    """An address that stays. On fleets it is given or allotted from a pool, in a stack the cloud chooses it."""

    kind: Annotated[AddressKind, word(AddressKind, KINDS), About("How the address stays the same.", "Kind", "")] = (
        AddressKind.NODE
    )
    address: Annotated[
        StaticAddress | None,
        About(
            "For fleets only. Default: the lowest free address in the pool. A cloud allocates its own address.",
            "Address",
        ),
    ] = None
    region: Annotated[ByName | None, About("Leave empty for an address that is announced everywhere.", "Region")] = None
    pool: Annotated[ByName | None, About("The address pool to allocate from.", "Address pool", "", "front")] = None
    stack: Annotated[ByName | None, About("For cloud addresses only.", "Stack")] = None
    owner: Annotated[
        ByName | None,
        About("The account that may use it.", "Assigned to", "", note="The account that it was given to."),
    ] = None
    protected: Annotated[
        Boolean | None,
        About(
            "It cannot be deleted, and no plan releases it.",
            "Protected",
            note="Left out, it stays as it is.",
            stays=False,
        ),
    ] = None
    router_id: Annotated[int, whole(1, 255), About("The VRRP router ID of a VIP. Default: allocated.")] | None = None

    @classmethod
    def together(cls, sent: Data) -> list[FieldError]:
        """What an address on fleets needs, and what the cloud chooses."""
        kind = str(sent.get("kind", AddressKind.NODE))
        if kind in ON_FLEETS:
            return _on_fleets(kind, sent)
        chosen = [field for field in ("address", "pool", "region", "router_id") if field in sent]
        field_errors = [
            FieldError(f"/{field}", "kind", f"The cloud chooses the addresses of its stack; leave {field} out.")
            for field in chosen
        ]
        if "stack" not in sent:
            field_errors.append(FieldError("/stack", "missing", f"Fill in stack: a {kind} address belongs to a stack."))
        return field_errors if kind in KINDS else []


def _on_fleets(kind: str, sent: Data) -> list[FieldError]:
    field_errors = []
    if "stack" in sent:
        detail = f"An address of kind {kind} belongs to fleets; leave out stack."
        field_errors.append(FieldError("/stack", "kind", detail))
    if kind == AddressKind.VIP and "region" not in sent:
        detail = "A vip moves among the nodes of one region; fill in region."
        field_errors.append(FieldError("/region", "missing", detail))
    if "router_id" in sent and kind != AddressKind.VIP:
        field_errors.append(FieldError("/router_id", "kind", "Only a vip has a router ID; leave this out."))
    return field_errors
