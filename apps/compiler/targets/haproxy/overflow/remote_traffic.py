"""Where other regions' overflow arrives, is counted apart, and admitted or refused.

Only who knows the installation's key is heard, on ports of their own: clients cannot forge it, and every listener drops
`x-spillway-…` headers that clients send. Overflow is never sent on, so nothing can go in circles.
"""

from __future__ import annotations

from collections.abc import Callable

from apps.compiler.bundle import bind_variable
from apps.compiler.model.fleet import Region, Snapshot
from apps.compiler.targets.haproxy.overflow.admission import (
    FLOW_TABLE,
    OWN_KEY,
    REMOTE_SUFFIX,
    Rules,
    add_admission,
    add_counts,
    add_refusal,
    add_release,
    equals,
    found,
    look_up,
    needs_of,
    no,
)
from apps.compiler.targets.haproxy.overflow.local_traffic import HEALTH_PATH, KEY
from apps.compiler.targets.haproxy.servers.persistence import needs_client_address
from apps.compiler.targets.haproxy.settings import HTTP, TCP
from apps.compiler.targets.haproxy.writer import Document, Expanded, Section

HTTP_LISTENER = "overflow"
TCP_LISTENER = "overflow-tcp"


def add_http_remote_traffic(
    document: Document, snapshot: Snapshot, own: Region, around: Callable[[Section], None]
) -> None:
    """The frontend for requests; `around` adds the probe before anything else.

    A refusal is 425: the node that sent the request may repeat it elsewhere, because no server has seen it. The 425 of
    a server travels as 503 with a header, and the sending node puts it back.
    """
    section = document.section("frontend", HTTP_LISTENER, "from", HTTP)
    # The digest covers this file and not the manifest: where the listener binds must be part of it.
    section.add("description", f"*:{snapshot.overflow_ports.http}")
    section.add("bind", Expanded(f"${{{bind_variable(HTTP_LISTENER)}}}"))
    around(section)
    rules = Rules(section, **needs_of(snapshot))
    rules.let("key", KEY)
    ours = ("{", "req.hdr(x-spillway-key),secure_memcmp(txn.key)", "}")
    rules.add("return", "status", "403", given=no(ours))
    rules.add(
        "return",
        "status",
        "200",
        given=("{", "path", HEALTH_PATH, "}", "!", "{", "req.hdr(x-spillway-pool)", "-m", "found", "}"),
    )
    for name in ("pool", "from"):
        rules.let(name, f"req.hdr(x-spillway-{name})")
    rules.let("last", "req.hdr(x-spillway-last)")
    if any(map(needs_client_address, snapshot.pools)):
        told = ("{", "req.hdr(x-spillway-client)", "-m", "found", "}")
        rules.add("set-src", "req.hdr_ip(x-spillway-client)", given=told)
    _add_verdict(rules, own)
    turned_away = found("verdict")
    refusal = ("hdr", "x-spillway-refused", "%[var(txn.verdict)]", "hdr", "x-spillway-region", snapshot.region_id)
    rules.add("return", "status", "425", *refusal, given=turned_away)
    rules.add("del-header", "x-spillway-", "-m", "beg")
    add_admission(rules, own, OWN_KEY + REMOTE_SUFFIX, no(turned_away))
    add_release(rules, own)
    early = ("{", "status", "425", "}")
    section.add("http-response", "set-header", "x-spillway-status", "425", "if", *early)
    section.add("http-response", "set-status", "503", "if", *early)
    section.add("http-response", "set-header", "x-spillway-region", snapshot.region_id)
    section.add("http-response", "set-header", "x-spillway-server", "%[srv_name]")
    section.add("http-response", "set-header", "x-spillway-over", "%[var(txn.over)]", "if", *found("over"))
    section.add("use_backend", "%[var(txn.pool)]")


def add_tcp_remote_traffic(document: Document, snapshot: Snapshot, own: Region) -> None:
    """The frontend for connections; the PROXY protocol's unique id says `<pool>|<from>|<last>|<key>`."""
    section = document.section("frontend", TCP_LISTENER, "from", TCP)
    section.add("description", f"*:{snapshot.overflow_ports.tcp}")
    section.add("bind", Expanded(f"${{{bind_variable(TCP_LISTENER)}}}"), "accept-proxy")
    rules = Rules(section, is_http=False, **needs_of(snapshot))
    rules.let("key", KEY)
    ours = ("{", "fc_pp_unique_id,field(4,|),secure_memcmp(txn.key)", "}")
    rules.add("reject", given=no(ours))
    for position, name in enumerate(("pool", "from", "last"), 1):
        rules.let(name, f"fc_pp_unique_id,field({position},|)")
    _add_verdict(rules, own)
    rules.add("reject", given=found("verdict"))
    add_admission(rules, own, OWN_KEY + REMOTE_SUFFIX, no(found("verdict")))
    section.add("use_backend", "%[var(txn.pool)]")


def tcp_marker(region_id: str) -> str:
    """What a listener writes into the unique id of connections that it sends away."""
    return f"%[var(txn.pool)]|{region_id}|%[var(txn.last)]|%[{KEY}]"


def _add_verdict(rules: Rules, own: Region) -> None:
    """`verdict` is why the request is refused, unset when it is admitted; then the count of one or the other.

    A request for which this region is the last that is asked comes in over the limit, but not where nothing is taken.
    """
    add_counts(rules, own, local=True, remote=True, given=look_up(rules, own))
    rules.let("verdict", "str(down)", ("{", "var(txn.pool),nbsrv", "-m", "int", "eq", "0", "}"))
    add_refusal(rules, own, "verdict")
    asked_last = ("{", "var(txn.last)", "-m", "sub", f"{own.id};", "}")
    one_too_many = (*asked_last, *no(equals("verdict", "down")), *no(equals("verdict", "drained")))
    rules.let("over", "var(txn.verdict)", one_too_many)
    rules.add("unset-var(txn.verdict)", given=one_too_many)
    rules.say("arrival", "%[var(txn.pool)]/from/%[var(txn.from)]/-")
    rules.say("arrival", "%[var(txn.pool)]/bounce/%[var(txn.from)]/%[var(txn.verdict)]", found("verdict"))
    rules.add("track-sc0", "var(txn.arrival)", "table", FLOW_TABLE)
    rules.add("sc-inc-gpc0(0)")
