"""Networks that may connect to a listener: others are closed before TLS and before anything is read.

The lists are the maps that policies ask as well. Behind the PROXY protocol the client is known a step later. The node
itself, by which the agent and keepalived ask, is never closed out; a private socket has no address.
"""

from __future__ import annotations

from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.listeners.client_address import ITSELF, has_proxies, phase_of
from apps.compiler.targets.haproxy.policies.identity.access import holds
from apps.compiler.targets.haproxy.writer import Section

_ANYBODY_ELSE = ("{", "src", "-m", "found", "}", "!", *ITSELF)


def add_access(section: Section, listener: Listener) -> None:
    """Close whom any list denies; then, where any list is allowed, who is in none of them."""
    if listener.access is None or not listener.access.lists:
        return
    phase = phase_of(listener)
    if not has_proxies(listener):  # else it is known from before the client was
        section.add("tcp-request", phase, "set-var(sess.here)", "dst")
    for each in listener.access.deny or ():
        section.add("tcp-request", phase, "reject", "if", *_ANYBODY_ELSE, *holds(each))
    outside = [word for each in listener.access.allow or () for word in ("!", *holds(each))]
    if outside:
        section.add("tcp-request", phase, "reject", "if", *_ANYBODY_ELSE, *outside)
