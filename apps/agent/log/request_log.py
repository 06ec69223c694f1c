"""A node's request log as the rest of the agent sees it: what HAProxy is started with, what is read, what is told."""

from __future__ import annotations

import os

from apps.agent.events import Events
from apps.agent.log.pipe import Pipe
from apps.agent.log.reading import Reader
from apps.agent.log.segments import Segments
from apps.agent.process.proxy import Proxy
from apps.agent.settings import Settings

LEVEL = "info"  # of request lines
OLD_MASTER = (
    "HAProxy was started by an older agent and cannot hand its request lines over. Restart the agent with --stop first."
)


class RequestLog:
    """The pipe, its reader and the segments of one HAProxy."""

    def __init__(self, settings: Settings, proxy: Proxy, events: Events) -> None:
        self._proxy = proxy
        self.segments = Segments(settings.state_dir / "log", settings.log_megabytes * 1024 * 1024)
        self._pipe: Pipe = proxy.pipe
        both = (proxy.pipe.open(), proxy.between.open())
        self._open: tuple[int, ...] = both
        self._reader = Reader(both, self.segments, events, proxy.worker)

    def start(self) -> None:
        """Begin to read."""
        self._reader.start()

    def stop(self) -> None:
        """Keep what is in the pipe, and end; once is enough."""
        self._reader.stop()
        for descriptor in self._open:
            os.close(descriptor)
        self._open = ()

    def before_reload(self) -> None:
        """Take over what the worker says it lost; nobody can ask it any more afterwards."""
        self._reader.count_lost()

    def level(self) -> str:
        """Which lines HAProxy is to write; empty for none, when a master lives whose output is something else."""
        mute = any(not self._pipe.is_output_of(pid) for pid in self._proxy.masters())
        self.segments.off = OLD_MASTER if mute else ""
        return "" if mute else LEVEL
