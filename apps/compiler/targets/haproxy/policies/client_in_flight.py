"""How many requests of one client are under way at once, as limits of pools count it (overflow/admission.py).

HAProxy counts that for as long as a request holds a counter, and has three for each. This takes the one by which
latencies are counted: requests of routes that bound what is in flight are not measured. The table stores nothing that
rules of others would raise on the counter.
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.compiler.targets.haproxy.writer import Argument, Section

TABLE = "st_clients_in_flight"
COUNTER = 1
FIELD = 9
_BOUNDED = ("{", f"var(txn.limit),field({FIELD},|)", "-m", "len", "gt", "0", "}")
_NOT_OVER = ("!", "{", "var(txn.over)", "-m", "found", "}")


def add_sum(section: Section, keys: list[str], own_key: str) -> None:
    """What all nodes said last; of itself this node knows better. Over the bound is over the limit."""
    for index, key in enumerate(keys):
        so_far = ",add(txn.counted)" if index else ""
        _let(section, "counted", f"var(txn.client),concat({key}),table_gpt0({TABLE}){so_far}")
    _let(section, "published", f"var(txn.client),concat(:,{own_key}),table_gpt0({TABLE})")
    _let(section, "counted", "var(txn.counted),sub(txn.published)")
    _let(section, "counted", f"var(txn.client),concat(:,{own_key}),table_conn_cur({TABLE}),add(txn.counted)")
    full = ("{", f"var(txn.limit),field({FIELD},|),sub(txn.counted)", "-m", "int", "le", "0", "}")
    _let(section, "over", "str(rate)", (*_NOT_OVER, *full))


def add_count(section: Section, own_key: str) -> None:
    """Hold the counter until the request ends, and tell the other nodes now and when the answer comes."""
    given = ("if", *_BOUNDED, *_NOT_OVER)
    key = f"var(txn.client),concat(:,{own_key})"
    section.add("http-request", f"track-sc{COUNTER}", key, "table", TABLE, *given)
    section.add("http-request", f"sc-set-gpt0({COUNTER})", f"sc_conn_cur({COUNTER})", *given)
    section.add("http-response", f"sc-set-gpt0({COUNTER})", f"sc_conn_cur({COUNTER}),sub(1)", *given)


def _let(section: Section, name: str, expression: str, given: Iterable[Argument] = ()) -> None:
    section.add("http-request", f"set-var(txn.{name})", expression, "if", *_BOUNDED, *given)
