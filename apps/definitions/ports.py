"""The ports: what apps above this one know and snapshots, zones and dry runs ask for; set once, in `ready()`.

Imports point downwards only, so these calls are all that goes up. A port that nobody has taken knows nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from apps.accounts.actors import Actor
    from apps.compiler.model.fleet import BypassToken
    from apps.definitions.server_sources.deciding import FoundServer
    from apps.definitions.server_sources.registries import Aws
    from apps.definitions.shapes.servers.source import Source
    from apps.definitions.writing.dry_runs.stack_differences import StackDifference, StackSide


class BypassTokens(Protocol):
    """capacity: the runs that may pass the limits of a region."""

    def __call__(self, region_id: int, /) -> Iterable[BypassToken]: ...


class StackWeights(Protocol):
    """stacks: how a stack shares traffic, by the primary key of the backend."""

    def __call__(self, stack_id: int, /) -> Mapping[int, int]: ...


class CloudNames(Protocol):
    """stacks: the DNS names that clouds gave to load balancers."""

    def __call__(self, load_balancers: Collection[int], /) -> Mapping[int, Iterable[str]]: ...


class CloudServers(Protocol):
    """stacks: the servers that a cloud lists for a source. Raises BadAnswer (server_sources/asking.py)."""

    def __call__(self, aws: Aws, source: Source, /) -> Iterable[FoundServer]: ...


class HeldAddresses(Protocol):
    """rollouts: static IPs that nodes may hold, whatever definitions say, and the names of these nodes."""

    def __call__(self) -> Mapping[str, Sequence[str]]: ...


class StackPreview(Protocol):
    """stacks: what a plan would hold because of a change (before None: the stack is made), as the actor may know it."""

    def __call__(self, actor: Actor, before: StackSide | None, after: StackSide, /) -> StackDifference | None: ...


@dataclass(slots=True)
class Ports:
    """One provider for each port."""

    bypass_tokens: BypassTokens = lambda _: ()
    stack_weights: StackWeights = lambda _: {}
    cloud_names: CloudNames = lambda _: {}
    cloud_servers: CloudServers = lambda _aws, _source: ()
    held_addresses: HeldAddresses = dict
    stack_preview: StackPreview = lambda _actor, _before, _after: None


PORTS = Ports()
