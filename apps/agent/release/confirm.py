"""The confirmation: waits until a new worker runs the wanted generation and answers alone on every port."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from apps.agent.bodies import Bind, Manifest
from apps.agent.check.load_time import load_seconds
from apps.agent.check.sandbox import failure_from
from apps.agent.errors import Refusal, Unavailable
from apps.agent.process.proxy import Proxy
from apps.agent.process.sockets import Ends
from apps.agent.release import nodecfg, probes
from apps.agent.settings import Settings

SURE = 12  # answers in a row from each port: a second program sharing it takes its part of the connections


@dataclass(frozen=True)
class Wanted:
    """Who has to answer: the release at `live`, what its manifest says, and the probe path's secret."""

    release: Path
    manifest: Manifest
    generation: int
    secret: str


def confirm(settings: Settings, proxy: Proxy, wanted: Wanted, offset: int) -> None:
    """Return when the new worker answers; raises Refusal, or Unavailable when none came up in time.

    `offset` is where haproxy's log ended before the reload.
    """
    seconds = settings.confirm_timeout + load_seconds(wanted.release)
    deadline = time.monotonic() + seconds
    before = proxy.processes()
    while worker_identity(proxy) != (wanted.generation, wanted.manifest.digest) or proxy.processes() is None:
        output = proxy.log_since(offset)
        failed = "Loading failure" in output or proxy.ended() or (before is not None and not proxy.running())
        if failed or "Cannot bind" in output:
            raise failure_from(output, "confirm", wanted.release)
        if time.monotonic() > deadline:
            message = f"No new worker started within {seconds:.0f} seconds. Raise --confirm-timeout to allow more time."
            raise Unavailable(message, "confirm")
        before = before or proxy.processes()
        time.sleep(0.01)
    for bind in wanted.manifest.binds:
        _confirm_port(settings, wanted, bind, deadline)


def _confirm_port(settings: Settings, wanted: Wanted, bind: Bind, deadline: float) -> None:
    """SURE answers in a row by the new worker; old workers of ours may still answer for a moment."""
    address, port = nodecfg.endpoint(settings, bind)
    identity = (str(wanted.generation), wanted.manifest.digest)
    row = 0
    while row < rounds(bind, SURE):
        answer = ask(settings, wanted.manifest, bind, wanted.secret, wanted.release)
        right = not answer.problem and (answer.generation, answer.digest) in (("", ""), identity)
        row = row + 1 if right else 0
        if answer.foreign or time.monotonic() > deadline:
            words = answer.problem or f"generation {answer.generation} answers"
            message = f"{bind.listener_id}: {words} on {nodecfg.written(address, port)}."
            slow = answer.silent or not answer.problem
            raise Unavailable(message, "confirm") if slow else Refusal(message, "confirm")
        if not right:
            time.sleep(0.01)


def rounds(bind: Bind, http: int) -> int:
    """How often to ask a listener: http and https so often, tcp once, for the kernel knows of all who listen."""
    return 1 if bind.protocol == "tcp" else http


def ask(
    settings: Settings, manifest: Manifest, bind: Bind, secret: str, release: Path, there: Ends | None = None
) -> probes.Answer:
    """Ask one listener of this node. Where its address moves another node might answer, so it is asked privately.

    A tcp listener with such an address is confirmed by the worker that came up with it.
    """
    if not manifest.moves(bind):
        return probes.probe(bind, *nodecfg.endpoint(settings, bind), secret, release, there=there)
    if bind.protocol == "tcp":
        return probes.Answer()
    return probes.ask_privately(nodecfg.private_socket(settings, bind), secret)


def worker_identity(proxy: Proxy) -> tuple[int, str]:
    """Generation and digest that the current worker was started with; (0, "") when nobody answers."""
    generation = proxy.worker_env("SPILLWAY_GENERATION")
    digest = proxy.worker_env("SPILLWAY_DIGEST")
    return (int(generation), digest) if generation.isdigit() else (0, "")
