"""What a frontend says of its listeners: timeouts, connections, compression, monitoring."""

from __future__ import annotations

from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.context import PRIVATE
from apps.importing.haproxy.text.durations import time_limit
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context

TIMES = (
    (("timeout", "client"), "client_timeout_ms"),
    (("clitimeout",), "client_timeout_ms"),
    (("cliexp",), "client_timeout_ms"),
    (("timeout", "http-request"), "request_timeout_ms"),
    (("timeout", "http-keep-alive"), "keepalive_timeout_ms"),
)
BELIEVED = "X-Forwarded-For is believed from private networks; name those of the proxy in front (client_address)."
KEEP_ALIVE = {
    "httpclose": "none",
    "forceclose": "none",
    "http-server-close": "clients",
    "http-keep-alive": "both",
    "http-tunnel": "both",
}


def add_options(context: Context, section: Section, listener: dict[str, Any]) -> None:
    """Add them to a listener."""
    is_tcp = listener["protocol"] == "tcp"
    connections = dict(listener.get("connections", {}))
    for words, field in TIMES:
        line = section.last(*words)
        if line is None or len(line.words) <= len(words):
            continue
        time, said = time_limit(line.words[len(words)])
        if time is None:
            continue
        context.ledger.differs(line, said) if said else context.ledger.mapped(line)
        if field == "client_timeout_ms" or not is_tcp:
            connections[field] = time
    most = section.last("maxconn")
    if most is not None and most.words[1:] and most.words[1].isdecimal():
        context.ledger.mapped(most)
        if int(most.words[1]):
            connections["max_connections"] = min(int(most.words[1]), 1_000_000)
    if not is_tcp:
        _keep_alive(context, section, connections)
        _compression(context, section, listener)
        _monitor(context, section, listener)
        _cache(context, section, listener)
        _forwarded(context, section, listener)
    if connections:
        listener["connections"] = connections


def kept_open(section: Section) -> str | None:
    """Which connections stay open: the last of the options that is not taken away counts; None where none is."""
    lines = [section.last("option", option) for option in KEEP_ALIVE]
    order = {line: at for at, line in enumerate(section.all_lines())}
    found = sorted((order[line], line.words[1]) for line in lines if line is not None)
    return KEEP_ALIVE[found[-1][1]] if found else None


def _keep_alive(context: Context, section: Section, connections: dict[str, Any]) -> None:
    for line in section.each("option"):
        if line.words[1:2] and line.words[1] in KEEP_ALIVE:
            context.ledger.mapped(line)
    if (said := kept_open(section)) is not None:
        connections["keep_alive"] = said


def _compression(context: Context, section: Section, listener: dict[str, Any]) -> None:
    algorithm, types = section.last("compression", "algo"), section.last("compression", "type")
    for line in section.each("compression"):
        context.ledger.mapped(line)
        if line.words[1:2] not in (("algo",), ("type",), ("offload",), ("algo-res",), ("type-res",), ("direction",)):
            context.ledger.differs(line, "Responses are compressed by type alone.")
        if line.words[1:2] == ("offload",):
            context.ledger.differs(line, "Servers are told what clients take, and may compress by themselves.")
        if line.words[1:2] in (("algo",), ("algo-res",)) and "gzip" not in line.words:
            context.ledger.differs(line, "Responses are compressed by gzip.")
    if algorithm is None and section.last("compression", "algo-res") is None:
        return
    wanted = []
    for text in types.words[2:] if types is not None else ():
        try:
            wanted.append(grammar.media_type(text))
        except GrammarError:
            if types is not None:
                context.ledger.differs(types, f"{text} is no media type, such as text/html.")
    listener["compression"] = {"types": sorted(set(wanted))[:32]} if wanted else {}


def _monitor(context: Context, section: Section, listener: dict[str, Any]) -> None:
    line = section.last("monitor-uri")
    if line is None or len(line.words) < 2:
        return
    try:
        path, mark, _ = line.words[1].partition("?")
        listener["monitor_path"] = grammar.path(path)
        context.ledger.mapped(line)
        if mark:
            context.ledger.differs(line, f"{path} is answered with any query.")
    except GrammarError as error:
        context.ledger.impossible(line, error.message)
    for fail in section.each("monitor", "fail"):
        context.ledger.differs(fail, "The path answers 200 while the node works, whatever the pools are like.")


def _cache(context: Context, section: Section, listener: dict[str, Any]) -> None:
    """`http-request cache-use` for every request, with the numbers of its section."""
    stores = list(section.each("http-response", "cache-store"))
    for line in section.each("http-request", "cache-use"):
        cache = next((each for each in context.configuration.of_kind("cache") if each.name == line.words[2]), None)
        if len(line.words) != 3 or cache is None:
            continue
        context.ledger.mapped(line)
        context.ledger.mapped(cache.header)
        listener["cache"] = {}
        for word, field, least, most in CACHE:
            said = cache.last(word)
            if said is not None and len(said.words) > 1 and said.words[1].isdecimal():
                context.ledger.mapped(said)
                listener["cache"][field] = min(max(least, int(said.words[1])), most)
        for said in cache.lines:
            if said.keyword in ("process-vary", "max-secondary-entries"):
                why = OF_CACHE.get(said.words) or OF_CACHE.get(said.words[:1], "")
                context.ledger.differs(said, why) if why else context.ledger.mapped(said)
    for line in stores:
        if len(line.words) == 3 and "cache" in listener:
            context.ledger.mapped(line)
        else:
            context.ledger.differs(line, "Responses are stored by the cache of a listener, for all of its paths.")


OF_CACHE = {
    ("process-vary", "off"): "Answers are told apart by the headers that Vary names.",
    ("max-secondary-entries",): "Answers that Vary tells apart are bounded by their size alone.",
}
CACHE = (
    ("total-max-size", "total_mb", 1, 4095),
    ("max-object-size", "max_object_bytes", 1024, 16_777_216),
    ("max-age", "max_age_s", 1, 3600),
)


def _forwarded(context: Context, section: Section, listener: dict[str, Any]) -> None:
    """`set-src` from a header of the proxy in front."""
    for line in section.each("http-request", "set-src"):
        expression = " ".join(line.words[2:]).lower()
        if not any(name in expression for name in ("x-forwarded-for", "x-real-ip", "cf-connecting-ip")):
            continue
        listener.setdefault("client_address", {})["forwarded_from"] = list(PRIVATE)
        context.ledger.differs(line, BELIEVED)
