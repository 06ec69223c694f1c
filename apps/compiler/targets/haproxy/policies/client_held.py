"""What HAProxy counts of a client while its request holds a counter: how many are under way, bytes, and errors.

HAProxy has three counters for a request. This takes the one by which latencies are counted: requests of routes that
bound one of these are not measured. The tables store nothing that rules of others would raise on the counter.

Each node counts under a key of its own, as for requests (client_limit.py). HAProxy does not tell peers how many are
under way, so that is published as `gpt0`, as for limits of pools (overflow/admission.py). Bytes it tells them itself:
when a request ends, and of long ones every five seconds (`option contstats`); errors, when a server answers with 4xx.
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.compiler.client_limits import WINDOW_S, has_bytes, is_held, per_of
from apps.compiler.model.policy import ClientLimit
from apps.compiler.targets.haproxy.writer import Argument, Section

COUNTER = 1
IN_FLIGHT, BYTES_OUT, BYTES_IN, ERRORS = 9, 10, 11, 12  # fields of a limit's terms
HELD = "held"  # the last word of terms that bound any of them
# Of what is counted in a window: the field, and what HAProxy calls it.
_RATES = {
    "bytes_out": (BYTES_OUT, "bytes_out_rate"),
    "bytes_in": (BYTES_IN, "bytes_in_rate"),
    "errors": (ERRORS, "http_err_rate"),
}
_NOT_OVER = ("!", "{", "var(txn.over)", "-m", "found", "}")
Words = tuple[Argument, ...]


def table(per: str) -> str:
    """Where they are counted."""
    return f"st_clients_held_{per}"


def stored(limits: Iterable[ClientLimit], per: str) -> str:
    """What the table of the period stores; "" where no limit needs it.

    With `conn_cur` peers are told of every end of a request: it is there only where requests under way are bounded.
    """
    held = [said for said in limits if is_held(said) and per_of(said) == per]
    at_once = "gpt0,conn_cur" if any(said.in_flight is not None for said in held) else ""
    window = WINDOW_S[per]
    of_bytes = f"bytes_out_rate({window}s),bytes_in_rate({window}s)" if any(map(has_bytes, held)) else ""
    errors = f"http_err_rate({window}s)" if any(said.errors is not None for said in held) else ""
    return ",".join(filter(None, (at_once, of_bytes, errors)))


def of_period(per: str) -> Words:
    """Condition: the limit has this period."""
    return ("{", "var(txn.limit)", "-m", "beg", f"{per}|", "}")


def _bounds(field: int) -> Words:
    return ("{", f"var(txn.limit),field({field},|)", "-m", "len", "gt", "0", "}")


def add_sums(section: Section, limits: list[ClientLimit], keys: list[str], own_key: str) -> None:
    """Add up what the nodes counted, and say who is over the limit."""
    for per in _periods(limits):
        said = [each for each in limits if per_of(each) == per]
        if any(each.in_flight is not None for each in said):
            _add_in_flight(section, per, keys, own_key)
        for name, (field, counter) in _RATES.items():
            if any(getattr(each, name) is not None for each in said):
                _add_rate(section, per, keys, field, f"table_{counter}({table(per)})")


def _periods(limits: list[ClientLimit]) -> list[str]:
    return sorted({per_of(said) for said in limits if is_held(said)})


def _add_in_flight(section: Section, per: str, keys: list[str], own_key: str) -> None:
    """What all nodes said last; of itself this node knows better. Over the bound is over the limit."""
    given = (*of_period(per), *_bounds(IN_FLIGHT))
    own = f"var(txn.client),concat(:,{own_key})"
    _add_up(section, f"table_gpt0({table(per)})", keys, given)
    _let(section, "published", f"{own},table_gpt0({table(per)})", given)
    _let(section, "counted", "var(txn.counted),sub(txn.published)", given)
    _let(section, "counted", f"{own},table_conn_cur({table(per)}),add(txn.counted)", given)
    full = ("{", f"var(txn.limit),field({IN_FLIGHT},|),sub(txn.counted)", "-m", "int", "le", "0", "}")
    _let(section, "over", "str(rate)", (*given, *_NOT_OVER, *full))


def _add_rate(section: Section, per: str, keys: list[str], field: int, question: str) -> None:
    """The window empties steadily: who is over by a tenth of what was counted is not after a tenth of the window."""
    given = (*of_period(per), *_bounds(field))
    _add_up(section, question, keys, given)
    _let(section, "bound", f"var(txn.limit),field({field},|),add(0)", given)
    full = (*given, *_NOT_OVER, "{", "var(txn.bound),sub(txn.counted)", "-m", "int", "le", "0", "}")
    beyond = f"var(txn.counted),sub(txn.bound),mul({WINDOW_S[per]}),div(txn.counted),add(1)"
    _let(section, "again", beyond, full)
    _let(section, "over", "str(rate)", full)


def add_counts(section: Section, limits: list[ClientLimit], own_key: str) -> None:
    """Hold the counter until the request ends, and tell the other nodes how many are under way."""
    key = f"var(txn.client),concat(:,{own_key})"
    for per in _periods(limits):
        held = ("if", *of_period(per), "{", "var(txn.limit)", "-m", "end", f"|{HELD}", "}", *_NOT_OVER)
        section.add("http-request", f"track-sc{COUNTER}", key, "table", table(per), *held)
    if any(said.in_flight is not None for said in limits):
        bounded = ("if", *_bounds(IN_FLIGHT), *_NOT_OVER)
        section.add("http-request", f"sc-set-gpt0({COUNTER})", f"sc_conn_cur({COUNTER})", *bounded)
        section.add("http-response", f"sc-set-gpt0({COUNTER})", f"sc_conn_cur({COUNTER}),sub(1)", *bounded)
    if any(map(has_bytes, limits)):
        section.add("option", "contstats")


def _add_up(section: Section, question: str, keys: list[str], given: Words) -> None:
    for index, key in enumerate(keys):
        so_far = ",add(txn.counted)" if index else ""
        _let(section, "counted", f"var(txn.client),concat({key}),{question}{so_far}", given)


def _let(section: Section, name: str, expression: str, given: Words) -> None:
    section.add("http-request", f"set-var(txn.{name})", expression, "if", *given)
