"""What an operator says of each node of a fleet: its size, and what it offers where listeners say nothing."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler.model.listener_options import TlsPreset


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Of each HAProxy process. None: as many as the machine has room for; times in ms."""

    max_connections: int | None = None
    threads: int | None = None
    buffer_bytes: int = 16_384
    http2_streams: int = 100
    old_worker_timeout_ms: int = 30_000
    tls_preset: TlsPreset = TlsPreset.INTERMEDIATE
