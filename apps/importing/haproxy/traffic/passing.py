"""Lines that nodes do by themselves: X-Forwarded-For, health of connections, statistics beside traffic."""

from __future__ import annotations

from apps.importing.haproxy.listeners.listening import KEEP_ALIVE, kept_open
from apps.importing.haproxy.pools.backends import protocol_of
from apps.importing.haproxy.rules.requests import names_client
from apps.importing.haproxy.text.keywords import answers_challenges, fact_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.text.tables.classes import Kind
from apps.importing.haproxy.text.tables.proxies import PROXY
from apps.importing.haproxy.traffic.context import Context
from apps.importing.haproxy.traffic.ignored import why_ignored
from apps.importing.verdicts import Line, Verdict

STRICT_HTTP = "Nodes read HTTP strictly, and answer 400 to what is no HTTP, 502 where a server sends it."
DONE = {
    "accept-invalid-http-request": STRICT_HTTP,
    "accept-invalid-http-response": STRICT_HTTP,
    "accept-unsafe-violations-in-http-request": STRICT_HTTP,
    "accept-unsafe-violations-in-http-response": STRICT_HTTP,
    "checkcache": "Responses that caches may keep are passed on with their cookies.",
    "http-buffer-request": "Servers get a request whose body has arrived: set body.buffered in a policy.",
    "http-restrict-req-hdr-names": "Headers with other signs than letters, digits and hyphens are refused.",
    "http-drop-request-trailers": "",
    "http-drop-response-trailers": "",
    "originalto": "Servers are not told the address that the client connected to.",
    "forwarded": "Set client_address.send_forwarded of the listener.",
}
ADDRESS = "Servers see the node's address; X-Forwarded-For or the PROXY protocol name the client."
PROBED = "Nodes answer probes at monitor_path of a listener, whoever asks, as long as they serve."
OTHERWISE: dict[str | tuple[str, ...], str] = {
    "source": ADDRESS,
    ("option", "transparent"): ADDRESS,
    "transparent": ADDRESS,
    "monitor-net": PROBED,
    ("monitor", "fail"): PROBED,
    ("filter", "compression"): "",
    ("filter", "cache"): "",
    "rate-limit": "A limit of the pool or of the account holds for all clients together; set one.",
    "enabled": "",
    "redisp": "",
    "redispatch": "",
    "dynamic-cookie-key": "The values of the cookie are made by Spillway.",
    "usesrc": ADDRESS,
    "http-send-name-header": "Servers are not told their names.",
    "declare": "",
    "persist": "Clients are not known again by the cookie of RDP.",
    "ignore-persist": "Persistence holds for every request of the pool.",
    "force-persist": "Clients of a server in maintenance get another one.",
    ("option", "persist"): "Clients whose server is down get another one.",
}
CHOOSING = ("use_backend", "default_backend")
STRICT = {None: 0, "both": 0, "clients": 1, "none": 2}
IN_BACKENDS = frozenset(
    {
        *("timeout", "balance", "retries", "option", "cookie", "http-check", "tcp-check", "fullconn", "http-reuse"),
        *("retry-on", "default-server", "hash-type", "contimeout", "srvtimeout", "clitimeout", "cliexp", "srvexp"),
        *("compression", "maxconn", "errorfile", "stick-table", "mode", "monitor-uri", "http-send-name-header"),
    }
)


def mark_what_nodes_do(context: Context) -> None:
    """Lines of used proxies and of their defaults that need no object."""
    for section in context.configuration.of_kind("frontend", "backend", "listen"):
        for line in section.all_lines() if context.ledger.is_part(section.header) else ():
            _mark(context, section, line)


def _mark(context: Context, section: Section, line: Line) -> None:
    ledger, words = context.ledger, line.words
    if ledger.verdict_of(line) is not None and line.keyword != "option":
        return
    if line.keyword == "mode":
        _mode(context, line)
    elif words[:2] == ("option", "forwardfor"):
        _forwarded(context, line)
    elif line.keyword == "option" and words[1:2] and words[1] in KEEP_ALIVE and section.kind == "backend":
        _kept_open(context, section, line)
    elif line.keyword == "option" and len(words) > 1 and words[1] in DONE and ledger.verdict_of(line) is None:
        _done(context, section, line)
    elif line.keyword in OTHERWISE or words[:2] in OTHERWISE:
        said = OTHERWISE.get(line.keyword, "") or OTHERWISE.get(words[:2], "")
        ledger.differs(line, said) if said else ledger.mapped(line)
    elif words[:2] == ("option", "http_proxy"):
        ledger.impossible(line, PROXY)
    elif words[:2] == ("timeout", "tarpit") or (words[:2] == ("timeout", "check") and section.kind == "listen"):
        ledger.note(line, Verdict.DEAD, "Nothing waits for this time.")
    elif line.keyword in IN_BACKENDS and section.kind != "listen" and ledger.verdict_of(line) is None:
        _beside(context, section, line)


def _done(context: Context, section: Section, line: Line) -> None:
    """An option of requests, which a section of tcp ignores."""
    if not why_ignored(section, line, speaks_http=protocol_of(section) == "http"):
        said = DONE[line.words[1]]
        context.ledger.differs(line, said) if said else context.ledger.mapped(line)


def _forwarded(context: Context, line: Line) -> None:
    """`option forwardfor`, and for whom it does not hold."""
    words = line.words
    context.ledger.mapped(line)
    if said := names_client(words)[1]:
        context.ledger.differs(line, said.removeprefix("different:"))
    if "if-none" in words:
        context.ledger.differs(
            line, "What clients send as X-Forwarded-For is replaced; name proxies that are believed (client_address)."
        )
    if "except" in words[:-1] and not words[words.index("except") + 1].startswith("127."):
        context.ledger.differs(line, "Requests of these networks have X-Forwarded-For as well.")


def _kept_open(context: Context, section: Section, line: Line) -> None:
    """An option of a backend closes connections even where its frontends would keep them."""
    context.ledger.mapped(line)
    if section.last(*line.words[:2]) is not line:
        return
    for front in context.configuration.of_kind("frontend", "listen"):
        named, kept = _chosen(context, front)
        if section.name in named and STRICT[kept] < STRICT[KEEP_ALIVE[line.words[1]]]:
            context.ledger.differs(line, "The listener says which connections stay open (connections.keep_alive).")


def _chosen(context: Context, front: Section) -> tuple[set[str], str | None]:
    """The backends that a section names, and which connections it keeps open; asked once for very many backends."""
    if front.header not in context.chosen:
        lines = (each for each in front.all_lines() if each.keyword in CHOOSING and len(each.words) > 1)
        context.chosen[front.header] = {each.words[1] for each in lines}, kept_open(front)
    return context.chosen[front.header]


def _mode(context: Context, line: Line) -> None:
    if line.words[1:2] in (("http",), ("tcp",)):
        context.ledger.mapped(line)
    elif line.words[1:2] == ("health",):
        context.ledger.differs(line, "Nodes answer probes at monitor_path of a listener.")
    else:
        context.ledger.impossible(line, "Listeners speak http, https or tcp.")


def _beside(context: Context, section: Section, line: Line) -> None:
    """Settings that HAProxy takes in each proxy and uses in the other kind alone."""
    if line.keyword == "compression" and section.kind == "backend" and line in section.lines:
        context.ledger.differs(line, "Listeners compress, for all of their pools; set compression there.")
        return
    fact = fact_of(section.kind, line.words)
    if fact is not None and fact.kind is Kind.TRAFFIC:
        why = why_ignored(section, line, speaks_http=protocol_of(section) == "http")
        context.ledger.note(line, Verdict.DEAD, why or "Nothing that uses this setting inherits it.")


SCRIPTS = ("lua-load", "lua-load-per-thread", "lua-prepend-path")


def mark_scripts(context: Context) -> None:
    """Lua that no line of the file calls."""
    sections = context.configuration.sections
    calls = any("lua." in word for section in sections for line in section.lines
                if line.keyword not in SCRIPTS and not answers_challenges(line.words)
                for word in line.words)  # fmt: skip
    loads = any(line.keyword in SCRIPTS[:2] for section in sections for line in section.lines)
    for section in sections:
        for line in section.lines if not calls else ():
            if line.keyword in SCRIPTS:
                why = "No line that is left calls the script; what it does by itself is left out."
                context.ledger.note(line, Verdict.DIFFERENT if loads else Verdict.DEAD, why)
