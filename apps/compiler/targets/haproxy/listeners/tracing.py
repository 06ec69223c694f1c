"""Traces of requests by `traceparent` (W3C Trace Context, level 1): kept, or begun here, with a span of our own.

| the client sends | `keep` | `make` |
|---|---|---|
| a valid traceparent | its trace, and our span as the parent of the server's | the same |
| none, a malformed one, several | none goes on | a trace whose id is that of the request |

Version `ff` is malformed, and so are capital letters and ids of zeros. A later version than ours is read as ours, which
is what goes on. `tracestate` goes on with a valid traceparent alone. A span is wanted of a share of the requests; only
clients of named networks decide by their own flag, so that nobody else can make us, or servers, keep more than that.
Nothing is written for a listener that says nothing of traces.
"""

from __future__ import annotations

from apps.compiler.model.listener_options import TraceMode, Tracing
from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.writer import Section

HEADER, STATE = "traceparent", "tracestate"
CAME, OURS, SAMPLED = "txn.came_trace", "txn.trace", "txn.sampled"
_IDS = "[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
_LATER = "(0[1-9a-f]|[1-9a-e][0-9a-f]|f[0-9a-e])"
VALID = f"^(00-{_IDS}|{_LATER}-{_IDS}(-.*)?)$"
NO_TRACE, NO_SPAN = f"-{'0' * 32}-", f"-{'0' * 16}-"
# Of `00-<32 of the trace>-<16 of the span>-<2 of flags>`.
LENGTH, TRACE_ID, FLAGS = 55, "bytes(3,32)", "bytes(53,2)"
# Half of the request's id: sixteen digits that never are zeros, and no chance is drawn once more.
OUR_SPAN = "%[unique-id,bytes(16,16)]"
ONE_IN = 1_000_000


def tracing_of(listener: Listener) -> Tracing | None:
    """What it says of traces; connections of tcp have none."""
    return None if listener.protocol is Protocol.TCP else listener.tracing


def samplers_path(listener_id: str) -> str:
    """Networks whose clients decide whether they are sampled: `maps/lst-1-samplers.map`."""
    return f"maps/{listener_id}-samplers.map"


def sampler_maps(front: LoadBalancer) -> dict[str, Entries]:
    """The map of each listener that names somebody: network → yes."""
    return {
        samplers_path(listener.id): dict.fromkeys(said.sampled_from, "yes")
        for listener in front.listeners
        if (said := tracing_of(listener)) is not None and said.sampled_from
    }


def add_traces(section: Section, listener: Listener) -> None:
    """Read what came, decide, and tell servers; `src` is the client by then."""
    said = tracing_of(listener)
    if said is None:
        return
    came = ("{", f"var({CAME})", "-m", "found", "}")
    _read(section, came)
    _sample(section, listener, said, came)
    _trace(section, f"%[var({CAME}),{TRACE_ID}]", "if", *came)
    if said.mode is TraceMode.MAKE:
        _trace(section, "%[unique-id]", "unless", *came)
        section.add("http-request", "set-header", HEADER, f"%[var({OURS})]")
    else:
        section.add("http-request", "del-header", HEADER, "unless", *came)
        section.add("http-request", "set-header", HEADER, f"%[var({OURS})]", "if", *came)


def _read(section: Section, came: tuple[str, ...]) -> None:
    whole = f"req.fhdr({HEADER})"
    once = ("{", f"req.fhdr_cnt({HEADER})", "eq", "1", "}")
    valid = ("{", whole, "-m", "reg", VALID, "}")
    section.add("http-request", f"set-var({CAME})", f"{whole},bytes(0,{LENGTH})", "if", *once, *valid)
    nothing = ("{", f"var({CAME})", "-m", "sub", "--", NO_TRACE, NO_SPAN, "}")
    section.add("http-request", f"unset-var({CAME})", "if", *nothing)
    section.add("http-request", "del-header", STATE, "unless", *came)


def _sample(section: Section, listener: Listener, said: Tracing, came: tuple[str, ...]) -> None:
    """One or zero: by chance, unless the client may decide and did."""
    share = round(said.sample_percent * ONE_IN / 100) or int(said.sample_percent > 0)
    if share in (0, ONE_IN):
        section.add("http-request", f"set-var({SAMPLED})", f"int({int(share > 0)})")
    else:
        section.add("http-request", f"set-var({SAMPLED})", f"rand({ONE_IN}),div({share}),not")
    if said.sampled_from:
        decides = ("{", f"src,map_ip({samplers_path(listener.id)})", "-m", "found", "}")
        own = f"var({CAME}),{FLAGS},hex2i,and(1)"
        section.add("http-request", f"set-var({SAMPLED})", own, "if", *came, *decides)


def _trace(section: Section, trace_id: str, *given: str) -> None:
    section.add("http-request", f"set-var-fmt({OURS})", f"00-{trace_id}-{OUR_SPAN}-0%[var({SAMPLED})]", *given)
