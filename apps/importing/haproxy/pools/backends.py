"""A backend or the servers of a `listen` as a pool."""

from __future__ import annotations

import re
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.servers import cookie_name
from apps.importing.haproxy.pools.checks import health_check
from apps.importing.haproxy.pools.connections import connections, retries, server_tls
from apps.importing.haproxy.pools.servers import (
    ServerLine,
    common,
    differing_lines,
    dispatched,
    documents,
    looked_up,
    number_of,
    read_servers,
)
from apps.importing.haproxy.text.durations import LONGEST_MS, milliseconds, time_limit
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line, Verdict

SERVER_WORDS = ("server", "default-server", "server-template")
BALANCE = {"roundrobin": "roundrobin", "static-rr": "roundrobin", "leastconn": "leastconn", "source": "source",
           "random": "random"}  # fmt: skip
# What a pool says of all of its servers.
OF_ALL = (
    *("send-proxy", "send-proxy-v2", "ssl", "verify", "ca-file", "verifyhost", "crt", "sni", "proto", "alpn"),
    *("slowstart", "maxconn", "minconn", "maxqueue", "inter", "rise", "fall", "check", "port", "agent-check"),
    *("agent-port", "observe", "error-limit"),
)
TIMES = (
    (("timeout", "connect"), "connect_timeout_ms"),
    (("contimeout",), "connect_timeout_ms"),
    (("timeout", "server"), "server_timeout_ms"),
    (("srvtimeout",), "server_timeout_ms"),
    (("srvexp",), "server_timeout_ms"),
    (("timeout", "queue"), "queue_timeout_ms"),
    (("timeout", "tunnel"), "tunnel_timeout_ms"),
)


def pool_of(context: Context, section: Section, name: str, default_port: int, protocol: str) -> dict[str, Any]:
    """The specification of the pool, without what an empty one has as well."""
    owner = f"Pool {name}"
    lines = [line for line in section.all_lines() if line.keyword in SERVER_WORDS]
    servers = read_servers(context, lines) or dispatched(context, section)
    for stand_in in context.stand_ins.get(section.name, ()):
        servers += _stand_ins(context, stand_in)
    spec: dict[str, Any] = {"protocol": protocol, "balance": _balance(context, section)}
    spec |= _times(context, section)
    check = health_check(context, section, servers, protocol)
    if check is not None:
        spec["health_check"] = check
    spec |= server_tls(context, servers, protocol)
    spec |= connections(context, section, servers, protocol)
    spec |= retries(context, section)
    spec |= _persistence(context, section, servers, protocol)
    spec |= _ways(context, section, servers, protocol)
    found = looked_up(context, servers, owner) or {"servers": documents(context, servers, default_port, owner)}
    spec["backends"] = [{"region": context.options.region, **found}]
    return spec


def _stand_ins(context: Context, backend: str) -> list[ServerLine]:
    """The servers of a backend that stands in for another one."""
    section = context.configuration.proxy(backend)
    if section is None:
        return []
    context.ledger.mapped(section.header)
    servers = read_servers(context, [line for line in section.all_lines() if line.keyword in SERVER_WORDS])
    for server in servers:
        server.options["backup"] = ""
    return servers


def protocol_of(section: Section) -> str:
    """http or tcp; tcp where nothing is said, as in HAProxy."""
    mode = section.last("mode")
    return "http" if mode is not None and mode.words[1:2] == ("http",) else "tcp"


def _balance(context: Context, section: Section) -> str:
    for each in (section.last("hash-type"), section.last("hash-balance-factor")):
        if each is not None:
            context.ledger.differs(each, "The hash is HAProxy's usual one.")
    line = section.last("balance")
    if line is None or len(line.words) < 2:
        return "roundrobin"
    algorithm = line.words[1].partition("(")[0]
    what = " ".join(line.words[2:]) if algorithm == "hash" else algorithm
    context.ledger.mapped(line)
    if algorithm == "first":
        context.ledger.differs(line, "The server with the fewest connections is chosen (leastconn).")
        return "leastconn"
    if algorithm not in BALANCE:
        why = f"Servers are chosen in turn: there is no hash of {what}. Persistence keeps a client at its server."
        context.ledger.differs(line, why)
    return BALANCE.get(algorithm, "roundrobin")


def _times(context: Context, section: Section) -> dict[str, int]:
    found = {}
    for words, field in TIMES:
        line = section.last(*words)
        if line is None or len(line.words) <= len(words):
            continue
        time, said = time_limit(line.words[len(words)])
        if time is None:
            context.ledger.impossible(line, "This is no duration, such as 30s.")
            continue
        context.ledger.differs(line, said) if said else context.ledger.mapped(line)
        found[field] = time
    if "connect_timeout_ms" in found and "queue_timeout_ms" not in found:
        found["queue_timeout_ms"] = found["connect_timeout_ms"]
    idle = [time for time in (found.get("server_timeout_ms"), _of_clients(section)) if time is not None]
    if idle:  # a connection on which neither side says anything any more
        found.setdefault("tunnel_timeout_ms", min(idle))
    return found


def _of_clients(section: Section) -> int | None:
    """How long a client may be silent, as far as the section or its defaults say it."""
    for words in (("timeout", "client"), ("clitimeout",), ("cliexp",)):
        line = section.last(*words)
        if line is not None and len(line.words) > len(words):
            return time_limit(line.words[len(words)])[0]
    return None


def _persistence(context: Context, section: Section, servers: list[ServerLine], protocol: str) -> dict[str, Any]:
    cookie = _cookie_of(context, section, servers, protocol)
    if cookie is not None:
        for line in (*section.each("stick"), *section.each("stick-table")):
            context.ledger.differs(line, "Clients of this pool are known again by its cookie alone.")
        return _by_cookie(context, cookie, servers)
    for line in section.all_lines():
        if line.keyword == "stick" and len(line.words) > 2:
            return _by_table(context, section, protocol)
    table = section.last("stick-table")
    if table is not None and context.ledger.verdict_of(table) is None:
        context.ledger.mapped(table)
    return {}


def _cookie_of(context: Context, section: Section, servers: list[ServerLine], protocol: str) -> Line | None:
    """The line of a cookie by which clients are known again; of servers without values HAProxy sends none."""
    session = section.last("appsession")
    line = section.last("cookie") or session
    if line is None or len(line.words) < 2 or protocol != "http":
        return None
    if session is not None and session is not line:
        context.ledger.differs(session, "Clients are known again by the other cookie alone.")
    named = any("cookie" in each.options for each in servers) or "dynamic" in line.words
    if line.keyword == "cookie" and not named:
        context.ledger.note(line, Verdict.DEAD, "No server has a value for the cookie, so HAProxy keeps no client.")
        return None
    return line


def _by_cookie(context: Context, line: Line, servers: list[ServerLine]) -> dict[str, Any]:
    words = line.words
    context.ledger.mapped(line)
    found: dict[str, Any] = {"by": "cookie", "mode": "prefix" if "prefix" in words else "insert"}
    # A cookie that servers set is theirs: one of its name from here would take its place.
    if words[0] != "appsession" and {"insert", "prefix"} & set(words):
        try:
            found["cookie"] = cookie_name(words[1])
        except GrammarError as error:
            context.ledger.differs(line, error.message)
    else:
        context.ledger.differs(line, "The load balancer sets a cookie of its own (insert) beside that of the servers.")
    found["http_only"] = "httponly" in words
    if "secure" in words:
        found["secure"] = True
    if "maxidle" in words[:-1] and (idle := milliseconds(words[words.index("maxidle") + 1], unit="s")):
        found["idle_s"] = min(max(1, idle // 1000), 31 * 86_400)
    for word in ("domain", "dynamic", "attr", "preserve", "maxlife"):
        if word in words:
            context.ledger.differs(line, f"The cookie has no {word}.")
    values = [each.options["cookie"] for each in servers if "cookie" in each.options]
    if values and line.number:
        context.ledger.differs(line, "The values of the cookie are new, so each client is given a server once more.")
        for each in servers:
            if "cookie" not in each.options:
                context.ledger.differs(each.line, "Clients of this server are known again as well, by the cookie.")
    return {"persistence": found}


def _by_table(context: Context, section: Section, protocol: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in section.each("stick"):
        expression = next((word for word in line.words[2:] if word not in ("if", "unless")), "")
        context.ledger.mapped(line)
        if "if" in line.words or "unless" in line.words:
            context.ledger.differs(line, "Persistence holds for every request of the pool.")
        if "table" in line.words:
            context.ledger.differs(line, "Each pool remembers its own clients.")
        if protocol == "tcp" or re.match(r"src\b", expression):
            found.setdefault("by", "source")
            if not expression.startswith("src"):
                context.ledger.differs(line, "Clients of tcp are known again by their address.")
        elif match := re.match(r"(?:req[._])?f?hdr\(([A-Za-z0-9-]+)\)", expression):
            found |= {"by": "header", "header": match[1]}
        else:
            found = {"by": "cookie"}
            context.ledger.differs(line, "Clients are known again by a cookie of the load balancer.")
    table = section.last("stick-table")
    if table is not None:
        context.ledger.mapped(table)
        words = table.words
        expire = milliseconds(words[words.index("expire") + 1]) if "expire" in words[:-1] else None
        if expire and found.get("by") != "cookie":
            found["idle_s"] = min(max(1, expire // 1000), 31 * 86_400)
    return {"persistence": found} if found else {}


def _ways(context: Context, section: Section, servers: list[ServerLine], protocol: str) -> dict[str, Any]:
    """PROXY protocol, HTTP/2, slow start, agents, servers that fail requests."""
    found: dict[str, Any] = {}
    if any(option.startswith("send-proxy-v2") for each in servers for option in each.options):
        found["proxy_protocol"] = "v2"
    elif common(servers, "send-proxy") is not None:
        found["proxy_protocol"] = "v1"
    agreed = (common(servers, "alpn") or "") if common(servers, "ssl") is not None else ""  # it is part of TLS
    if protocol == "http" and "h2" in (common(servers, "proto"), *agreed.split(",")):
        found["http_version"] = "2"
    if slow := number_of(servers, "slowstart"):
        found["slow_start_ms"] = slow
    _say_longest(context, servers)
    found |= _watched(servers, protocol)
    _say_backups(context, section, servers)
    for option in OF_ALL:
        for line in differing_lines(servers, option):
            context.ledger.differs(line, f"All servers of a pool have the same {option}.")
    return found


def _say_backups(context: Context, section: Section, servers: list[ServerLine]) -> None:
    """Of several backup servers HAProxy uses the first one that is up, nodes all of them."""
    own = [each for each in servers if "backup" in each.options and each.line in section.lines]
    if section.last("option", "allbackups") is None:
        for each in own[1:]:
            context.ledger.differs(each.line, "All backup servers share the requests, and not the first one alone.")


def _say_longest(context: Context, servers: list[ServerLine]) -> None:
    for option in ("slowstart", "inter", "agent-inter"):
        for each in servers:
            if (milliseconds(each.options.get(option, "")) or 0) > LONGEST_MS:
                context.ledger.differs(each.line, f"An hour is the longest {option}.")


def _watched(servers: list[ServerLine], protocol: str) -> dict[str, Any]:
    """Agents of servers, and servers that fail requests."""
    found: dict[str, Any] = {}
    if common(servers, "agent-check") is not None and (port := common(servers, "agent-port")) and port.isdecimal():
        found["agent_check"] = {"port": int(port)}
        if interval := number_of(servers, "agent-inter"):
            found["agent_check"]["interval_ms"] = interval
    observed = common(servers, "observe")
    if observed and common(servers, "check") is not None:
        layer7 = observed == "layer7" and protocol == "http"
        found["outlier_ejection"] = {"observe": "responses" if layer7 else "connections"}
        if (errors := common(servers, "error-limit")) and errors.isdecimal():
            found["outlier_ejection"]["errors"] = min(max(1, int(errors)), 1000)
    return found
