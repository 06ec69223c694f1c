"""Of a pool's requests only a share is sent again, so that retries cannot double the load of servers that fail.

HAProxy has no counter to spare on a request (overflow/ceilings.py), so each node keeps three numbers of the process for
each pool with a budget: the window of ten seconds, requests that came in it, and attempts beyond their first. Threads
may overwrite each other's additions, which loses a few of both. A request asks when it comes: those that are under way
when the budget is spent may still be sent again.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Pool
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.writer import Call, Section, Value

WINDOW_S = 10
# So many in a window are no storm, whatever the share says.
ALWAYS = 10


def add_retry_budget(section: Section, pool: Pool) -> None:
    """Rules of a backend of the pool; a pool without a budget has none. Failed connections are always tried again."""
    if pool.retries is None or pool.retries.budget_percent is None:
        return
    window, requests, attempts = (f"proc.{name}_{number_of(pool.id)}" for name in ("window", "requests", "attempts"))
    section.add("http-request", "set-var(txn.window)", f"date,div({WINDOW_S})")
    same = ("{", f"var(txn.window),sub({window})", "-m", "int", "0", "}", "{", f"var({window})", "-m", "found", "}")
    section.add("http-request", "set-var(txn.counted)", "bool(true)", "if", *same)
    first = ("if", "!", "{", "var(txn.counted)", "-m", "found", "}")
    for name, start in ((requests, "int(0)"), (attempts, "int(0)"), (window, "var(txn.window)")):
        section.add("http-request", f"set-var({name})", start, *first)
    section.add("http-request", f"set-var({requests})", f"var({requests}),add(1)")
    share = Call((f"var({requests}),mul(", Value(str(pool.retries.budget_percent)), ")"))
    section.add("http-request", "set-var(txn.budget)", share)
    spent = ("{", f"var({attempts}),mul(100),sub(txn.budget)", "-m", "int", "ge", "0", "}")
    many = ("{", f"var({attempts})", "-m", "int", "ge", str(ALWAYS), "}")
    section.add("http-request", "disable-l7-retry", "if", *many, *spent)
    section.add("http-after-response", "set-var-fmt(txn.tries)", "%rc")
    section.add("http-after-response", "set-var(txn.again)", "var(txn.tries),add(0)")  # `+2` is 2
    again = ("if", "{", "var(txn.again)", "-m", "int", "gt", "0", "}")
    section.add("http-after-response", f"set-var({attempts})", f"var({attempts}),add(txn.again)", *again)
