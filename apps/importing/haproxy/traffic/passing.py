"""Lines that nodes do by themselves: X-Forwarded-For, health of connections, statistics beside traffic."""

from __future__ import annotations

from apps.importing.haproxy.text.keywords import fact_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.text.tables.classes import Kind
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line, Verdict

DONE = {
    "http-buffer-request": "Servers get a request whose body has arrived: set body.buffered in a policy.",
    "http-restrict-req-hdr-names": "",
    "http-drop-request-trailers": "",
    "http-drop-response-trailers": "",
    "redispatch": "",
    "abortonclose": "",
    "prefer-last-server": "",
    "originalto": "Servers are not told the address that the client connected to.",
    "forwarded": "Set client_address.send_forwarded of the listener.",
    "http_proxy": "",
    "allbackups": "",
}
ADDRESS = "Servers see the node's address; X-Forwarded-For or the PROXY protocol name the client."
OTHERWISE: dict[str | tuple[str, ...], str] = {
    "source": ADDRESS,
    ("option", "transparent"): ADDRESS,
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
}
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
        if context.ledger.verdict_of(section.header) in (None, Verdict.NODE_SETTING):
            continue
        for line in section.all_lines():
            _mark(context, section, line)


def _mark(context: Context, section: Section, line: Line) -> None:
    ledger, words = context.ledger, line.words
    if ledger.verdict_of(line) is not None and line.keyword != "option":
        return
    if line.keyword == "mode":
        _mode(context, line)
    elif words[:2] == ("option", "forwardfor"):
        ledger.mapped(line)
        if "header" in words and words[-1].lower() not in ("x-forwarded-for", "x-real-ip"):
            ledger.differs(line, "The address of the client is in X-Forwarded-For and X-Real-IP.")
    elif line.keyword == "option" and len(words) > 1 and words[1] in DONE and ledger.verdict_of(line) is None:
        ledger.differs(line, DONE[words[1]]) if DONE[words[1]] else ledger.mapped(line)
    elif line.keyword in OTHERWISE or words[:2] in OTHERWISE:
        said = OTHERWISE.get(line.keyword, "") or OTHERWISE.get(words[:2], "")
        ledger.differs(line, said) if said else ledger.mapped(line)
    elif words[:2] == ("timeout", "tarpit"):
        ledger.note(line, Verdict.DEAD, "Nothing waits for this time.")
    elif line.keyword in IN_BACKENDS and section.kind != "listen" and ledger.verdict_of(line) is None:
        _beside(context, section, line)


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
        context.ledger.note(line, Verdict.DEAD, "Nothing that uses this setting inherits it.")


SCRIPTS = ("lua-load", "lua-load-per-thread", "lua-prepend-path")


def mark_scripts(context: Context) -> None:
    """Lua that no line of the file calls."""
    sections = context.configuration.sections
    calls = any("lua." in word for section in sections for line in section.lines
                if line.keyword not in SCRIPTS for word in line.words)  # fmt: skip
    loads = any(line.keyword in SCRIPTS[:2] for section in sections for line in section.lines)
    for section in sections:
        for line in section.lines if not calls else ():
            if line.keyword in SCRIPTS:
                why = "Nothing of this file calls the script; what it does by itself is left out."
                context.ledger.note(line, Verdict.DIFFERENT if loads else Verdict.DEAD, why)
