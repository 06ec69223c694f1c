"""The shape of a LoadBalancer: where it stands, and the ports that clients connect to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler.grammar import GrammarError
from apps.compiler.model.shared import Protocol
from apps.definitions.shapes.base.shape import ALWAYS, UNORDERED, About, Check, Data, Distinct, Shape
from apps.definitions.shapes.base.words import LISTED, ByName, Name, Port, Reference, word


def _of_https(certificates: tuple[str, ...], data: Data) -> None:
    protocol = data.get("protocol")
    if protocol is Protocol.HTTPS and not certificates:
        raise GrammarError("missing", "An https listener needs at least one certificate.")
    if protocol in (Protocol.HTTP, Protocol.TCP) and certificates:
        raise GrammarError("protocol", "Only an https listener has certificates.")


def _of_tcp(pool: str | None, data: Data) -> None:
    if data.get("protocol") is Protocol.TCP and pool is None:
        raise GrammarError("missing", "A tcp listener needs a default_pool; it has no routes.")


@dataclass(frozen=True, slots=True)
class ListenerSpec(Shape):
    """Where clients connect; certificates and pools of others are not shown to customers."""

    may_be_absent: ClassVar[tuple[str, ...]] = ("certificates", "default_pool")

    name: Annotated[Name, About("What people call it.", "Name", "", "web")]
    protocol: Annotated[Protocol, word(Protocol), About("What clients speak.", "Protocol", "", "http")]
    port: Annotated[Port, About("Of the static IP, or of each node's own address.", "Port", "", 80)]
    static_ip: Annotated[ByName | None, About("None for each node's own address.", "Static IP")] = None
    certificates: Annotated[
        tuple[Reference, ...],
        LISTED,
        Distinct(),
        UNORDERED,
        Check(_of_https),
        ALWAYS,
        About("The chains that are shown, by the name that is asked for; https alone has some.", "Certificates"),
    ] = ()
    default_pool: Annotated[
        Reference | None, Check(_of_tcp), ALWAYS, About("What no route takes; tcp has no routes.", "Default pool")
    ] = None


@dataclass(frozen=True, slots=True)
class LoadBalancerSpec(Shape):
    """A front: the fleets that run it, the stacks that it stands in, and its ports."""

    fleets: Annotated[
        tuple[ByName, ...],
        LISTED,
        Distinct(),
        UNORDERED,
        About("Those that run it.", "Fleets", example="europe-west1"),
    ] = ()
    stacks: Annotated[
        tuple[ByName, ...], LISTED, Distinct(), UNORDERED, About("Those that it stands in.", "Stacks")
    ] = ()
    listeners: Annotated[
        tuple[ListenerSpec, ...], LISTED, Distinct(("name",), ("port", "static_ip")), About("Its ports.")
    ] = ()
