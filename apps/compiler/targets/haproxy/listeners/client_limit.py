"""How many connections one client may open at a listener, counted by all nodes of the region together.

They are counted as requests are (policies/client_limit.py), in the same tables under keys of the same form; the
listener is the scope. A connection that is one too many is closed before TLS and before anything is read. Behind the
PROXY protocol the client is known a step later.

Whoever forwards for many clients is spared, since a connection of theirs is nobody's; so is the node itself, by which
the agent and keepalived ask.
"""

from __future__ import annotations

import hashlib

from apps.compiler.client_limits import IPV4_PREFIX, IPV6_PREFIX, numbers_of, of_connections, per_of
from apps.compiler.model.fleet import Region, Snapshot
from apps.compiler.model.policy import ClientLimit
from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.listeners.client_address import ITSELF, from_forwarder, has_proxies, phase_of
from apps.compiler.targets.haproxy.policies.client_limit import HEADER_FOR_SERVERS, NODE, groups_of, keys_of, table
from apps.compiler.targets.haproxy.policies.lookup import add_mark
from apps.compiler.targets.haproxy.writer import Argument, Section

_CLIENT = ("{", "var(sess.client)", "-m", "found", "}")
_OVER = ("{", "var(sess.over)", "-m", "found", "}")
_ADMITTED = (*_CLIENT, "!", *_OVER)
Words = tuple[Argument, ...]


def connection_limits(snapshot: Snapshot) -> set[ClientLimit]:
    """Those of all listeners, as limits of requests."""
    listeners = (each for front in snapshot.load_balancers for each in front.listeners)
    return {limit for each in listeners if (limit := _limit_of(each)) is not None}


def _limit_of(listener: Listener) -> ClientLimit | None:
    said = listener.client_limit
    return None if said is None or said.connections is None else of_connections(said)


def add_connection_limit(section: Section, own: Region | None, listener: Listener) -> None:
    """Count a connection, or close it; nothing of what is kept for that outlives the rules."""
    limit = _limit_of(listener)
    if limit is None:
        return
    rules = _Rules(section, phase_of(listener))
    if not has_proxies(listener):  # else it is known from before the client was
        rules.let("here", "dst")
    _name_client(rules, listener, limit)
    numbers, counted_in = numbers_of(limit), table(per_of(limit))
    for counter, bound in (("gpc0", numbers.long), ("gpc1", numbers.short)):
        for index, key in enumerate(keys_of(own)):
            so_far = ",add(sess.counted)" if index else ""
            rules.let("counted", f"var(sess.client),concat({key}),table_{counter}_rate({counted_in}){so_far}", _CLIENT)
        above = ("{", f"int({bound}),sub(sess.counted)", "-m", "int", "le", "0", "}")
        rules.let("over", "str(rate)", (*_ADMITTED, *above))
    if not limit.log_only:
        rules.add("reject", given=_OVER)
    _count(rules, counted_in)


def _name_client(rules: _Rules, listener: Listener, limit: ClientLimit) -> None:
    """`sess.client` are the groups of its key, unless it may open any number. A private socket has no address."""
    add_mark(rules.section, "sess.passes_limit", limit.exempt or (), (), ("tcp-request", rules.phase))
    exempt = ("!", "{", "var(sess.passes_limit)", "-m", "found", "}") if limit.exempt else ()
    forwarder = ("!", *from_forwarder(listener)) if listener.has_forwarders else ()
    masks = f"{limit.ipv4_prefix or IPV4_PREFIX},{limit.ipv6_prefix or IPV6_PREFIX}"
    scope = hashlib.sha256(listener.id.encode()).hexdigest()[:12]
    counted = ("{", "src", "-m", "found", "}", "!", *ITSELF, *exempt, *forwarder)
    rules.say("client", f"{scope}a%[src,ipmask({masks})]", counted)
    rules.let("client", "var(sess.client),sha1,hex", _CLIENT)
    rules.say("client", groups_of("sess.client"), _CLIENT)


def _count(rules: _Rules, counted_in: str) -> None:
    rules.let("address", "src", _ADMITTED)
    rules.add("set-src", f"var(sess.client),concat(:,{NODE})", given=_ADMITTED)
    for counter in ("gpc0", "gpc1"):
        rules.let("counted", f"src_inc_{counter}({counted_in})", _ADMITTED)
    rules.add("set-src", "var(sess.address)", given=_ADMITTED)
    for name in ("address", "counted", "client"):
        rules.add(f"unset-var(sess.{name})", given=_CLIENT)


def drop_mark(section: Section, listener: Listener) -> None:
    """Clients cannot say of themselves what only :func:`tell_servers` says."""
    if _logs(listener):
        section.add("http-request", "del-header", HEADER_FOR_SERVERS)


def tell_servers(section: Section, listener: Listener) -> None:
    """Tell servers of requests whose connection would have been closed."""
    if _logs(listener):
        section.add("http-request", "set-header", HEADER_FOR_SERVERS, "exceeded", "if", *_OVER)


def _logs(listener: Listener) -> bool:
    return listener.client_limit is not None and bool(listener.client_limit.log_only)


class _Rules:
    """Rules before any request: `tcp-request connection …`, or `session` where the client is known no sooner."""

    def __init__(self, section: Section, phase: str) -> None:
        self.section, self.phase = section, phase

    def add(self, action: str, *arguments: Argument, given: Words = ()) -> None:
        """One rule."""
        condition = ("if", *given) if given else ()
        self.section.add("tcp-request", self.phase, action, *arguments, *condition)

    def let(self, name: str, expression: str, given: Words = ()) -> None:
        """Set a variable to an expression."""
        self.add(f"set-var(sess.{name})", expression, given=given)

    def say(self, name: str, text: str, given: Words = ()) -> None:
        """Set a variable to a text with expressions in it."""
        self.add(f"set-var-fmt(sess.{name})", text, given=given)
