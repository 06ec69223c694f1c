"""Bench of SHOW: server time and queries of every page with 10 000 routes of 100 accounts, or as many as asked for.

The pages are asked for in this process, through every middleware, in a database of its own (SQLite, or
SPILLWAY_DATABASE_URL), with a real Redis and one real revision of what is defined; each time a sample came in between,
so nobody is answered with what was made for another. Goal: p95 below 150 ms.

`--routes 100000 --keep DIR` fills the database in DIR once and finds it there the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from controlplane import web_server
from tests.e2e import pages
from tests.servers import redis

GOAL_MS = 150.0
# So many go through the validation of everything else; of more, all but a few are copies of rows.
VALIDATED, POOLS_EACH = 10_000, 1
FEW, FEW_ACCOUNTS = 100, 10
TUTORIAL = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "tutorial.yaml"


def asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=10_000)
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--processor", action="store_true", help="processor time, where others use the machine")
    parser.add_argument("--only", nargs="*", default=[], help="names of pages")
    parser.add_argument("--keep", type=Path, help="a directory for the database, which stays")
    return parser.parse_args(arguments)


def fill(routes: int, accounts: int) -> Any:
    """The tutorial, so many routes, and a revision that no node could take; returns a signed-in browser."""
    from django.core.management import call_command
    from django.test import Client

    from apps.accounts.bootstrap import found_operator
    from apps.accounts.models import User
    from apps.definitions.models import Route
    from apps.definitions.previewing import portability_report
    from apps.fleet.models import Fleet
    from apps.rollouts.services import reconcile_fleet

    call_command("migrate", verbosity=0)
    if not User.objects.exists():
        found_operator(username="bench", password="a password of the bench")
    if not Route.objects.exists():
        call_command("apply", str(TUTORIAL), verbosity=0)
        few = routes > VALIDATED
        call_command("seed", routes=FEW if few else routes, accounts=FEW_ACCOUNTS if few else accounts, verbosity=0)
        for fleet in Fleet.objects.all():
            reconcile_fleet(fleet_id=fleet.pk)
    multiply(routes)
    portability_report.examine(Route.objects.earliest("pk").load_balancer_id)  # as a worker does
    client = Client()
    client.force_login(User.objects.get())
    return client


def multiply(routes: int) -> None:
    """Copies of a customer's pools and routes as rows, for tables as long as asked for: pages read nothing else."""
    from apps.accounts.models import Account, Hostname
    from apps.definitions.models import Backend, Pool, Route, RoutePool, Server

    missing = routes - Route.objects.count()
    if missing <= 0:
        return
    pattern = Route.objects.filter(pools__isnull=False, redirect__isnull=True, fixed_response__isnull=True).earliest(
        "pk"
    )
    pool = pattern.pools.earliest("pk").pool
    backends = {each.pk: list(each.servers.all()) for each in pool.backends.all()}
    kinds = Account.objects.bulk_create(
        Account(name=f"many-{at:04}", title=f"Many {at}", kind=pool.account.kind) for at in range(missing // 100)
    )
    pools = [_copy(pool, account=owner, name=f"service-{at}") for owner in kinds for at in range(POOLS_EACH)]
    Pool.objects.bulk_create(pools, batch_size=500)
    stored = {each.pk: each for each in pool.backends.all()}
    for old, servers in backends.items():
        made = [_copy(stored[old], account=each.account, pool=each) for each in pools]
        Backend.objects.bulk_create(made, batch_size=500)
        Server.objects.bulk_create(
            (_copy(server, account=each.account, backend=each) for each in made for server in servers), batch_size=500
        )
    hosts = [
        Hostname(account=owner, name=f"host-{at}.{owner.name}.example", verification="operator")
        for owner in kinds
        for at in range(20)
    ]
    Hostname.objects.bulk_create(hosts, batch_size=500)
    rows = [
        _copy(pattern, account=host.account, hostname=host, name=f"{host.name.partition('.')[0]}-{at}", path=f"/v{at}")
        for host in hosts
        for at in range(5)
    ]
    Route.objects.bulk_create(rows, batch_size=500)
    own = {owner.pk: at * POOLS_EACH for at, owner in enumerate(kinds)}
    RoutePool.objects.bulk_create(
        (
            RoutePool(route=row, pool=pools[own[row.account_id] + at % POOLS_EACH], weight=100)
            for at, row in enumerate(rows)
        ),
        batch_size=500,
    )


def _copy(row: Any, **changed: Any) -> Any:
    """The same row, not stored yet, with other values."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    made = type(row)(**{name: value for name, value in values.items() if name != "id"})
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def paths() -> dict[str, str]:
    """Every page that has an object to show, and lists from the middle."""
    from django.test import Client

    from apps.accounts.models import Account
    from apps.accounts.tokens import create_token
    from apps.definitions.models import Pool, Route
    from apps.definitions.selectors import make_cursor

    operator = Account.objects.get(kind=Account.Kind.OPERATOR)
    secret = create_token(account=operator, name=f"bench-{time.time_ns()}", role="viewer")
    api, found = Client(headers={"Authorization": f"Bearer {secret}"}), {}
    for name, (path, listed) in pages.PAGES.items():
        first = _first(api, listed) if listed else ""
        if first is not None:
            found[name] = path.format(first)
    count = Route.objects.count()
    middle = Route.objects.select_related("hostname").order_by("hostname__name", "path", "id")[count // 2]
    cursor = make_cursor((middle.hostname.name, middle.path, middle.pk))
    pool = Pool.objects.order_by("id")[Pool.objects.count() // 2].pk
    return found | {
        "overview, live part": "/?partial=now",
        "routes, middle": f"/routes?cursor={cursor}",
        "routes, search": "/routes?q=shop",
        "route, middle": f"/routes/{middle.pk}",
        "pool, middle": f"/pools/{pool}",
        "pools, search": "/pools?q=service",
        "badges": "/badges",
        "search": "/search?q=shop",
        "options": "/options/pools?pool=service",
    }


def _first(api: Any, listed: str) -> str | None:
    """The id of the first object that the API lists there; None where there is none."""
    answer = api.get(pages.of_first(listed))
    items = json.loads(answer.content).get("items", []) if answer.status_code == 200 else []
    return str(items[0]["id"]) if items else None


def measure(client: Any, path: str, times: int, clock: Callable[[], float]) -> dict[str, float] | None:
    """Milliseconds (p50, p95), queries and kilobytes of one page; None where there is nothing to show."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from apps.core import events

    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    asked_for = len(queries)  # now: the next request empties the log
    if answer.status_code == 404:
        return None
    if answer.status_code != 200:
        raise SystemExit(f"{path} answered {answer.status_code}")
    spent = []
    for at in range(times):
        events.publish("samples", at=at)
        started = clock()
        client.get(path)
        spent.append(1000 * (clock() - started))
    p95 = statistics.quantiles(spent, n=20)[-1]
    size = len(answer.content) / 1000
    return {"p50_ms": statistics.median(spent), "p95_ms": p95, "queries": asked_for, "kB": size}


def main() -> int:
    """Print the table, slowest first; 1 when a page is slower than the goal."""
    wanted = asked()
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory, redis(Path(directory)) as url:
        var = str(wanted.keep.resolve()) if wanted.keep else directory
        Path(var).mkdir(parents=True, exist_ok=True)
        os.environ |= {"SPILLWAY_VAR": var, "SPILLWAY_REDIS_URL": url, "SPILLWAY_LOG_LEVEL": "ERROR"}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
        import django

        django.setup()
        client = fill(wanted.routes, wanted.accounts)
        chosen = {name: path for name, path in paths().items() if not wanted.only or name in wanted.only}
        for path in chosen.values():
            client.get(path)  # what pages load once is there, as in a server that has run a while
        web_server.when_ready(None)  # nor does a server carry what filling left behind
        clock = time.process_time if wanted.processor else time.perf_counter
        asked_each = {name: measure(client, path, wanted.times, clock) for name, path in chosen.items()}
        found = {name: measured for name, measured in asked_each.items() if measured}
        print(f"{'page':22}{'p50 ms':>8}{'p95 ms':>8}{'queries':>9}{'kB':>7}")
        for name, measured in sorted(found.items(), key=lambda each: -each[1]["p95_ms"]):
            print(
                f"{name:22}{measured['p50_ms']:8.0f}{measured['p95_ms']:8.0f}"
                f"{measured['queries']:9.0f}{measured['kB']:7.0f}"
            )
    print(json.dumps(found))
    return int(max(each["p95_ms"] for each in found.values()) > GOAL_MS)


if __name__ == "__main__":
    sys.exit(main())
