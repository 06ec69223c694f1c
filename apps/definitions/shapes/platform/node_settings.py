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
            "Concurrent connections of a node on all ports together; accounts' shares are parts of it. "
            "Default: as many as the node's limit of open files allows.",
            "Max. connections",
            example=100_000,
        ),
    ] = None
    threads: Annotated[
        int | None, whole(*grammar.NODE_THREADS), About("Default: one for each processor.", "Threads")
    ] = None
    buffer_bytes: Annotated[
        int,
        whole(*grammar.NODE_BUFFER),
        About("Bytes. The headers of a request or response must fit. Each connection uses two buffers.", "Buffer"),
    ] = 16_384
    http2_streams: Annotated[
        int, whole(*grammar.NODE_STREAMS), About("Concurrent requests on one HTTP/2 connection.", "HTTP/2 streams")
    ] = 100
    old_worker_timeout_ms: Annotated[
        TimeMs,
        About("ms. Connections that are still open this long after a reload are closed.", "Old worker timeout"),
    ] = 30_000
    tls_preset: Annotated[
        TlsPreset,
        word(TlsPreset, PRESETS),
        About("The preset of https listeners without one of their own.", "TLS preset"),
    ] = TlsPreset.INTERMEDIATE
