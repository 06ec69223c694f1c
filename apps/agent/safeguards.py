"""The safeguards: everything that stands between a request and what runs, handed to the node at its making.

The agent always has all of them. A test builds a node that lacks one and shows what goes wrong: a safeguard whose
absence nobody notices guards nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from apps.agent import bodies
from apps.agent.bodies import Manifest
from apps.agent.check.allowlist import check_allowlist
from apps.agent.check.sandbox import Sandbox
from apps.agent.check.trial_run import trial_run
from apps.agent.errors import Refusal, Superseded, Unavailable
from apps.agent.names.dns import Address
from apps.agent.names.resolver import Refused, refusal
from apps.agent.process.proxy import Proxy
from apps.agent.release import runtime
from apps.agent.release.confirm import Wanted, confirm
from apps.agent.release.health import state_file
from apps.agent.release.nodecfg import Endpoint
from apps.agent.release.probes import taken
from apps.agent.release.releases import Releases, replace_link
from apps.agent.settings import Settings
from apps.agent.static_ips.addresses import Addresses

OLDEST = (2, 6)


def newer_only(asked: int, running: int) -> None:
    """Raise Superseded unless the generation is higher than the one that runs."""
    if asked <= running:
        raise Superseded(asked, running)


def same_base(asked: str, confirmed: str, on_disk: str) -> None:
    """Raise Refusal unless operations start from what was confirmed and what lies on disk (three digests)."""
    if not asked == confirmed == on_disk:
        raise Refusal("This node does not run the configuration that the change starts from.", "runtime")


def supported(version: str) -> None:
    """Raise Unavailable where the node's HAProxy is too old; without a version its check will tell."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise Unavailable(
            f"This node has HAProxy {version}; Spillway needs {needed} or later: install a newer package, "
            "or name another binary with --haproxy.",
            "validate",
        )


@dataclass(frozen=True)
class Safeguards:
    """In the order in which a push meets them; the last two are those of runtime operations."""

    same_content: Callable[[Mapping[str, str], Mapping[str, str]], bool] = bodies.same_content
    fence: Callable[[int, int], None] = newer_only
    supported: Callable[[str], None] = supported
    sandbox: Callable[[Settings], Sandbox] = Sandbox
    check_allowlist: Callable[[str, str], None] = check_allowlist
    check: Callable[[Sandbox, Path, Path], None] = Sandbox.check
    addresses: Callable[[Addresses, Path, Manifest], None] = Addresses.check
    trial_run: Callable[[Settings, Sandbox, Path, Manifest, int, str], None] = trial_run
    port_taken: Callable[[Endpoint, bool], str | None] = taken
    replace_link: Callable[[Path, Path], None] = replace_link
    names: Callable[[Address, Refused], str] = refusal
    health: Callable[[str, str, Callable[[str], bool]], str] = state_file
    confirm: Callable[[Settings, Proxy, Wanted, int], None] = confirm
    put_back: Callable[[Releases, Path | None], None] = Releases.point_live
    base: Callable[[str, str, str], None] = same_base
    safe_word: Callable[[str], bool] = runtime.safe_word
