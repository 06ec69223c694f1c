"""`server`, `default-server` and `server-template`: servers of a pool, and what their options say of the whole pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.definitions.shapes.servers.source import source as source_of
from apps.importing.haproxy.pools.addresses import endpoint_of, say_unset
from apps.importing.haproxy.text.durations import LONGEST_MS, milliseconds
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.text.tables.proxies import SERVER_OPTIONS
from apps.importing.haproxy.text.words import expanded
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line

FLAGS = frozenset(
    {
        *("check", "backup", "ssl", "send-proxy", "send-proxy-v2", "send-proxy-v2-ssl", "send-proxy-v2-ssl-cn"),
        *("disabled", "enabled", "agent-check", "check-ssl", "check-send-proxy", "non-stick", "tfo", "no-tls-tickets"),
        *("allow-0rtt", "stick", "tls-tickets", "ssl-reuse", "check-via-socks4", "strict-maxconn", "check-reuse-pool"),
        *("renegotiate", "no-renegotiate"),
    }
)


@dataclass(slots=True)
class ServerLine:
    """One line: the server's own fields, and all options (flags are empty), with those of `default-server` below."""

    line: Line
    name: str
    target: str
    options: dict[str, str] = field(default_factory=dict)
    count: int = 1


def options_of(words: tuple[str, ...]) -> dict[str, str]:
    """Option → value; a `no-` takes its option away."""
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith("no-"):
            found.pop(word[3:], None)
            found[word] = ""
        elif word in FLAGS or word.startswith("force-"):
            found[word] = ""
        else:
            found[word] = words[at] if at < len(words) else ""
            at += 1
    return found


def read_servers(context: Context, lines: list[Line]) -> list[ServerLine]:
    """All servers, each with the defaults that stand above it."""
    defaults: dict[str, str] = {}
    found = []
    for line in lines:
        words = line.words
        if words[0] == "default-server":
            defaults |= options_of(words[1:])
            _mark(context, line, options_of(words[1:]))
        elif words[0] in ("server", "server-template") and len(words) > 2:
            template = words[0] == "server-template"
            at = 4 if template else 3
            if len(words) < at:
                context.ledger.impossible(line, "The line lacks the address of the server.")
                continue
            own = options_of(words[at:])
            options = {name: value for name, value in defaults.items() if f"no-{name}" not in own} | own
            found.append(ServerLine(line, words[1], words[at - 1], options))
            _mark(context, line, own)
    return found


def dispatched(context: Context, section: Section) -> list[ServerLine]:
    """`dispatch 10.0.0.1:80`: the only server of a section without others."""
    line = section.last("dispatch")
    if line is None or len(line.words) < 2:
        return []
    context.ledger.mapped(line)
    return [ServerLine(line, "dispatch", line.words[1])]


def _mark(context: Context, line: Line, options: dict[str, str]) -> None:
    context.ledger.mapped(line)
    for option, value in options.items():
        fact = SERVER_OPTIONS.get(option)
        if fact is None:
            context.ledger.impossible(line, f"No version of HAProxy has the option {option} of a server.")
        elif option in WHY:
            context.ledger.differs(line, WHY[option])
        elif option == "ssl-min-ver" and value != "TLSv1.2":
            context.ledger.differs(line, OF_NODES)


OF_NODES = "Versions and ciphers of TLS to servers are those of nodes."
WHY = {
    "source": "Servers see the node's address.",
    "usesrc": "Servers see the node's address; X-Forwarded-For or the PROXY protocol name the client.",
    "socks4": "Servers are reached directly, not by SOCKS.",
    "redir": "Requests go through the node; use a redirect.",
    "track": "Each pool checks its own servers.",
    "namespace": "Nodes use one network.",
    "fastinter": "Checks have one interval.",
    "downinter": "Checks have one interval.",
    "addr": "Servers are checked where they serve.",
    "agent-addr": "The agent is asked at the address of the server.",
    "crl-file": "Certificates of servers are not looked up in a revocation list.",
    "on-marked-down": "Connections that are open stay at a server that goes down; new ones go to others.",
    "on-marked-up": "Connections that are open stay at backup servers when others come back.",
    "check-sni": "Checks ask for the name of the server (server_tls.server_name).",
    "send-proxy-v2-ssl": "The PROXY protocol says the address, not what TLS was like.",
    "send-proxy-v2-ssl-cn": "The PROXY protocol says the address, not what TLS was like.",
    "on-error": "A server that fails requests gets none for a while, whatever on-error says.",
    "proxy-v2-options": "The PROXY protocol says addresses, and nothing else.",
    "set-proxy-v2-tlv-fmt": "The PROXY protocol says addresses, and nothing else.",
    "non-stick": "Clients of this server are known again as well.",
    "agent-send": "The agent is sent nothing.",
    "check-proto": "Checks speak the protocol of requests.",
    "check-alpn": "Checks speak the protocol of requests.",
    "ws": "WebSockets reach servers as other requests do.",
    **dict.fromkeys(("ciphers", "ciphersuites", "curves", "sigalgs", "client-sigalgs"), OF_NODES),
    **dict.fromkeys(("ssl-max-ver", "no-tlsv12", "no-tlsv13", "force-sslv3", "force-tlsv10", "force-tlsv11"), OF_NODES),
    **dict.fromkeys(("force-tlsv12", "force-tlsv13"), OF_NODES),
}


def looked_up(context: Context, servers: list[ServerLine], owner: str) -> dict[str, Any]:
    """A pool of one `server-template`: its servers are all of a name, whose number it no longer bounds."""
    templates = [each for each in servers if each.line.keyword == "server-template"]
    for each in templates:
        context.ledger.belongs(each.line, owner)
        text, unknown = expanded(each.target, context.configuration.environment)
        say_unset(context, each.line, unknown)
        name = text.rpartition(":")[0] or text
        try:
            found = source_of(f"srv://{name}" if name.startswith("_") else f"dns://{text}")
        except GrammarError:
            found = ""
        if found and len(servers) == 1:
            context.ledger.differs(each.line, f"All servers that {name} names in DNS get requests, however many.")
            return {"servers_from": found}
        context.ledger.differs(each.line, "One server has the name; the agent asks for one of its addresses.")
    return {}


def documents(context: Context, servers: list[ServerLine], default_port: int, owner: str) -> list[dict[str, Any]]:
    """Servers as they stand in a backend of a pool; two of one address are one, with the sum of their weights."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    names: set[str] = set()
    weights = [_number(each, "weight") for each in servers]
    default_weight = 100 if not any(weights) else 1
    for server in servers:
        context.ledger.belongs(server.line, owner)
        endpoint = endpoint_of(context, server.line, server.target, default_port)
        if endpoint is None:
            continue
        key = (endpoint.address, endpoint.port)
        weight = _number(server, "weight")
        weight = default_weight if weight is None else weight
        if key in found:
            found[key]["weight"] = min(256, found[key]["weight"] + weight)
            context.ledger.differs(server.line, "A pool has each address once; the weights are added.")
            continue
        entry: dict[str, Any] = {
            "name": _free(context.name(f"Server {owner}", server.name), names),
            "address": endpoint.address,
            "port": endpoint.port,
            "weight": min(weight, 256),
        }
        if "backup" in server.options:
            entry["backup"] = True
        if "disabled" in server.options:
            entry["state"] = "maintenance"
        found[key] = entry
    return list(found.values())


def _free(name: str, names: set[str]) -> str:
    """A second server of a name gets a number."""
    found, number = name, 2
    while found in names:
        found, number = f"{name}-{number}", number + 1
    names.add(found)
    return found


def _number(server: ServerLine, option: str) -> int | None:
    text = server.options.get(option, "").rstrip("%")
    return int(text) if text.isdecimal() else None


def common(servers: list[ServerLine], option: str) -> str | None:
    """The value that servers have in common, or the first one; None where no server has the option."""
    return next((each.options[option] for each in servers if option in each.options), None)


def differing_lines(servers: list[ServerLine], option: str) -> list[Line]:
    """Lines of servers that say something else than the first one does."""
    first = common(servers, option)
    return [each.line for each in servers if first is not None and each.options.get(option) != first]


def number_of(servers: list[ServerLine], option: str, read: Callable[[str], int | None] = milliseconds) -> int | None:
    """A number, at most an hour of milliseconds."""
    text = common(servers, option)
    found = read(text) if text else None
    return min(found, LONGEST_MS) if found else None
