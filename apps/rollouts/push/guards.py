"""The last look before any node: what a compiled bundle must not do to what runs; pure."""

from __future__ import annotations

from collections.abc import Collection

from apps.compiler.bundle import Bundle
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Finding
from apps.compiler.questions.assertions import broken

# From so many routes to none at once is a lost table, not somebody's wish.
NOT_BY_HAND = 10

# Lines without which a reload loses requests, a header can be forged or a socket is open to others.
SAFETY = (
    "master-worker",
    "hard-stop-after ",
    'stats socket "${SPILLWAY_RUN}/worker.sock" mode 600 ',
    "option idle-close-on-response",
    "option http-restrict-req-hdr-names reject",
    "default-server init-addr last,none ",
)


def violations(before: Snapshot | None, after: Snapshot, bundle: Bundle) -> list[str]:
    """Sentences that say why the bundle must not be pushed; empty when it may. `before` is what should run now."""
    return [*_emptiness(before, after), *_safety(bundle)]


def failed_assertions(
    after: Snapshot, quarantined: Collection[Finding], withheld: Collection[Finding] = ()
) -> list[str]:
    """What somebody asserted of requests and would not be so, counted with what the checks left out.

    What an account asserts does not hold up the others while something of its own is withheld: nodes refuse that.
    """
    excused = {finding.label.partition("/")[0] for finding in withheld}
    found = [
        each
        for each in broken(after, {finding.object_id for finding in quarantined})
        if each.route.account not in excused
    ]
    return [f"Assertion {each.index} of route {each.route.label} fails: {each.sentence}" for each in found]


def is_empty(snapshot: Snapshot) -> bool:
    """Whether nobody can reach anything: there is no listener."""
    return not any(front.listeners for front in snapshot.load_balancers)


def _emptiness(before: Snapshot | None, after: Snapshot) -> list[str]:
    if before is None:
        return []
    found = []
    if is_empty(after) and not is_empty(before):
        ports = sum(len(front.listeners) for front in before.load_balancers)
        found.append(f"No listener would be left; {ports} listeners run now.")
    routes = [sum(len(front.routes) for front in snapshot.load_balancers) for snapshot in (before, after)]
    if routes[0] >= NOT_BY_HAND and not routes[1]:
        found.append(f"None of the {routes[0]} routes would be left.")
    return found


def _safety(bundle: Bundle) -> list[str]:
    lines = [line.strip() + " " for line in bundle.files.get("haproxy.cfg", b"").decode().splitlines()]
    missing = [value for value in SAFETY if not any(line.startswith(value) for line in lines)]
    return [f"haproxy.cfg does not say `{value.strip()}`." for value in missing]
