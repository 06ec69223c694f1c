"""The shape of a fleet's node settings: what an operator says of each HAProxy of the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.model import node_settings as model
from apps.compiler.model.listener_options import TlsPreset
from apps.definitions.shapes.base.shape import About, Shape
from apps.definitions.shapes.base.words import TimeMs, whole, word
from apps.definitions.shapes.traffic.listener_options import PRESETS


@dataclass(frozen=True, slots=True)
class NodeSettingsSpec(model.NodeSettings, Shape):
    """Of each node's HAProxy; a change is a reload."""

    component: ClassVar[str] = "NodeSettings"

    max_connections: Annotated[
        int | None,
        whole(*grammar.NODE_CONNECTIONS),
        About(
            "At once on a node, clients and all ports together; accounts' shares are parts of it. None: as many as "
            "the node's limit of open files allows.",
            "Max. connections",
            example=100_000,
        ),
    ] = None
    threads: Annotated[int | None, whole(*grammar.NODE_THREADS), About("None: one for each processor.", "Threads")] = (
        None
    )
    buffer_bytes: Annotated[
        int,
        whole(*grammar.NODE_BUFFER),
        About("The headers of a request or an answer must fit into it. Each connection takes two.", "Buffer"),
    ] = 16_384
    http2_streams: Annotated[
        int, whole(*grammar.NODE_STREAMS), About("Requests at once on one connection of HTTP/2.", "HTTP/2 streams")
    ] = 100
    old_worker_timeout_ms: Annotated[
        TimeMs,
        About("ms. After a reload, connections that are still open are cut after this time.", "Old worker timeout"),
    ] = 30_000
    tls_preset: Annotated[
        TlsPreset, word(TlsPreset, PRESETS), About("What https listeners offer that say nothing.", "TLS preset")
    ] = TlsPreset.INTERMEDIATE
