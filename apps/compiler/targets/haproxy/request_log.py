"""One line for each request and connection, written where the client came in; another region's node writes none.

Fields are separated by tabs and always stand in this order. A dash is a field that has nothing to say. What clients
choose comes last and is encoded, so that no client can make a field or a line: HAProxy writes other than plain
characters of the request line as `#0A`, the rest is percent-encoded. Each of them has a bound; a line that is too long
all the same is cut at its end.

HAProxy writes lines to its standard output, a pipe that the agent reads (apps/agent/log/). It never waits there: what
the pipe does not take is counted and lost. A line says identifiers; apps/logs/meaning.py makes names of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.compiler.grammars.request_log import ERRORS, NONE, SAMPLED, USUAL_ONE_IN
from apps.compiler.model.policy import Log
from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.writer import Call, Expanded, Section, Value

LONGEST_LINE = 4000
"""One write to a pipe is whole up to 4096 bytes (PIPE_BUF), whoever else writes."""
REQUEST, TRACED, CONNECTION = "R1", "R2", "C1"
"""The first field: what the line is, and which version of its fields; `R2` is a request of a listener with traces."""
LONGEST_PARENT = 128
LONGEST_HOST = 255
LONGEST_QUERY = 1024
LONGEST_HEADER = 256

# 48 bits of milliseconds, then chance, as a UUIDv7 without dashes; of a connection the reader puts it together.
_CHANCE = "rand,hex,bytes({},{}),lower"
ID = "%[date(0,ms),hex,bytes(4,12),lower]7%[{}]8%[{}]%[{}]".format(
    *(_CHANCE.format(*each) for each in ((13, 3), (9, 7), (8, 8)))
)


def _variable(name: str) -> str:
    return f"%[var(txn.{name})]"


# What decides and what is known of a request before any client's word.
REQUEST_FIELDS: Mapping[str, str] = {
    "mark": REQUEST,
    "id": "%ID",
    "seconds": "%Ts",
    "milliseconds": "%ms",
    "listener": "%f",
    "route": _variable("route"),
    "backend": "%b",
    "server": "%s",
    "pool": _variable("pool"),
    "flow": _variable("flow"),
    "served_by": _variable("served_by"),
    "refused_by": _variable("refused_by"),
    "over": _variable("over"),
    "capped": _variable("capped"),
    "bypass": _variable("bypass"),
    "one_in": _variable("one_in"),
    "status": "%ST",
    "termination": "%ts",
    "request_ms": "%TR",
    "queue_ms": "%Tw",
    "connect_ms": "%Tc",
    "response_ms": "%Tr",
    "total_ms": "%Ta",
    "bytes_in": "%U",
    "bytes_out": "%B",
    "tls": "%sslv",
    "cipher": "%sslc",
    "client": "%ci",
    "method": "%HM",
    "host": f"%[var(txn.authority),bytes(0,{LONGEST_HOST}),url_enc]",
    "parent": f"%[var(txn.parent),bytes(0,{LONGEST_PARENT}),url_enc]",
    "path": "%HPO",
    "query": _variable("kept_query"),
    "headers": _variable("kept_headers"),
}
# What clients may choose of a trace has a fixed length and no letters but hexadecimal digits.
TRACED_FIELDS: Mapping[str, str] = {
    "mark": TRACED,
    "trace": _variable("trace"),
    "caller": "%[var(txn.came_trace),bytes(36,16)]",
    **{name: said for name, said in REQUEST_FIELDS.items() if name != "mark"},
}
CONNECTION_FIELDS: Mapping[str, str] = {
    "mark": CONNECTION,
    "seconds": "%Ts",
    "milliseconds": "%ms",
    "chance": "%[" + _CHANCE.format(13, 3) + "]%[" + _CHANCE.format(9, 7) + "]%[" + _CHANCE.format(8, 8) + "]",
    "listener": "%f",
    "backend": "%b",
    "server": "%s",
    "pool": _variable("pool"),
    "flow": _variable("flow"),
    "capped": _variable("capped"),
    "termination": "%ts",
    "queue_ms": "%Tw",
    "connect_ms": "%Tc",
    "total_ms": "%Tt",
    "bytes_in": "%U",
    "bytes_out": "%B",
    "tls": "%sslv",
    "cipher": "%sslc",
    "client": "%ci",
    "host": f"%[var(txn.asked),bytes(0,{LONGEST_HOST}),url_enc]",
}


def add_target(section: Section) -> None:
    """Where lines go. The agent says `info` where it reads them; on a trial run, say, none is ever as grave."""
    words = ("len", str(LONGEST_LINE), "format", "raw", "local0", Expanded("${SPILLWAY_LOG-emerg}"))
    section.add("log", "stdout", *words)


def add_requests(section: Section, *, traced: bool) -> None:
    """The line of each request, and its id: made here, told to servers and clients; a client's own is its parent."""
    fields = TRACED_FIELDS if traced else REQUEST_FIELDS
    section.add("log", "global")
    section.add("option", "dontlognull")  # a connection without a request is none
    section.add("log-format", "\t".join(fields.values()))
    section.add("unique-id-format", ID)


def add_ids(section: Section) -> None:
    """Tell the id; before anything else looks at the header."""
    section.add("http-request", "set-var(txn.parent)", "req.hdr(x-request-id)")
    section.add("http-request", "set-header", "X-Request-Id", "%[unique-id]")
    section.add("http-after-response", "set-header", "X-Request-Id", "%[unique-id]")


def add_connections(section: Section, listener: Listener) -> None:
    """The line of each connection; whatever frontend serves it, it is one of the listener."""
    section.add("log", "global")
    section.add("log-format", "\t".join({**CONNECTION_FIELDS, "listener": listener.id}.values()))


def add_silence(section: Section, *given: str | Expanded) -> None:
    """No line for a request."""
    section.add("http-request", "set-log-level", "silent", *given)


def add_policy(section: Section, when: tuple[str, ...], said: Log) -> None:
    """What a policy says of the lines of its routes.

    A request is an error by the status of its response, which is known when the server has answered. What the load
    balancer answers by itself, such as a refusal or 503, is one as well, but for redirects and a route's own response.
    """
    if said.requests == NONE:
        add_silence(section, "if", *when)
        return
    if said.requests == SAMPLED:
        one_in = str(said.one_in or USUAL_ONE_IN)
        section.add("http-request", "set-var(txn.one_in)", f"int({one_in})", "if", *when)
        add_silence(section, "if", *when, "!", "{", f"rand({one_in})", "0", "}")
    if said.requests == ERRORS:
        own = ("{", "var(txn.action)", "-m", "beg", "redirect|", "route-", "}")
        add_silence(section, "if", *own, *when)
        section.add("http-response", "set-log-level", "silent", "if", *when, "{", "status", "lt", "500", "}")
    if said.query:
        kept = f"query,bytes(0,{LONGEST_QUERY}),url_enc"
        section.add("http-request", "set-var(txn.kept_query)", kept, "if", *when)
    for name in said.headers or ():
        fetch = ("req.fhdr(", Value(name), ")")
        there = ("{", Call(fetch), "-m", "found", "}")
        value = (*fetch[:2], f"),bytes(0,{LONGEST_HEADER}),url_enc]&")
        pair = Call(("%[var(txn.kept_headers)]", Value(name.lower()), "=%[", *value))
        section.add("http-request", "set-var-fmt(txn.kept_headers)", pair, "if", *when, *there)
