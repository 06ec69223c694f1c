"""Bench of SHOW: server time and queries of every page with 10 000 routes of 100 accounts.

The pages are asked for in this process, through every middleware, in a database of its own (SQLite, or
SPILLWAY_DATABASE_URL), with a real Redis and one real revision of what is defined. Goal: p95 below 150 ms.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.servers import redis

ROUTES, ACCOUNTS, TIMES = 10_000, 100, 60
GOAL_MS = 150.0
TUTORIAL = Path(__file__).resolve().parents[2] / "deploy" / "examples" / "tutorial.yaml"


def fill() -> Any:
    """The tutorial, ten thousand routes, and a revision that no node could take; returns a signed-in browser."""
    from django.core.management import call_command
    from django.test import Client

    from apps.accounts.bootstrap import found_operator
    from apps.accounts.models import User
    from apps.fleet.models import Fleet
    from apps.rollouts.services import reconcile_fleet

    call_command("migrate", verbosity=0)
    found_operator(username="bench", password="a password of the bench")
    call_command("apply", str(TUTORIAL), verbosity=0)
    call_command("seed", routes=ROUTES, accounts=ACCOUNTS, verbosity=0)
    for fleet in Fleet.objects.all():
        reconcile_fleet(fleet_id=fleet.pk)
    client = Client()
    client.force_login(User.objects.get())
    return client


def paths() -> dict[str, str]:
    """Every page, with an object from the middle of each noun."""
    from apps.definitions.models import LoadBalancer, Pool, Route
    from apps.definitions.selectors import make_cursor
    from apps.fleet.models import Node
    from apps.rollouts.models import Rollout

    middle = Route.objects.select_related("hostname").order_by("hostname__name", "path", "id")[ROUTES // 2]
    cursor = make_cursor((middle.hostname.name, middle.path, middle.pk))
    pool = Pool.objects.order_by("id")[Pool.objects.count() // 2].pk
    return {
        "overview": "/",
        "overview, live part": "/?partial=now",
        "routes": "/routes",
        "routes, middle": f"/routes?cursor={cursor}",
        "routes, search": "/routes?q=shop",
        "route": f"/routes/{middle.pk}",
        "route, edit": f"/routes/{middle.pk}/edit",
        "route, new": "/routes/new",
        "pools": "/pools",
        "pool": f"/pools/{pool}",
        "pool, edit": f"/pools/{pool}/edit",
        "load balancers": "/load-balancers",
        "load balancer": f"/load-balancers/{LoadBalancer.objects.get().pk}",
        "fleets": "/fleets",
        "node": f"/nodes/{Node.objects.earliest('id').pk}",
        "rollouts": "/rollouts",
        "rollout": f"/rollouts/{Rollout.objects.latest('id').pk}",
        "static IPs": "/static-ips",
        "certificates": "/certificates",
        "search": "/search?q=shop",
    }


def measure(client: Any, path: str) -> dict[str, float]:
    """Milliseconds (p50, p95), queries and kilobytes of one page."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    asked = len(queries)  # now: the next request empties the log
    if answer.status_code != 200:
        raise SystemExit(f"{path} answered {answer.status_code}")
    spent = []
    for _ in range(TIMES):
        started = time.perf_counter()
        client.get(path)
        spent.append(1000 * (time.perf_counter() - started))
    p95 = statistics.quantiles(spent, n=20)[-1]
    size = len(answer.content) / 1000
    return {"p50_ms": statistics.median(spent), "p95_ms": p95, "queries": asked, "kB": size}


def main() -> int:
    """Print the table; 1 when a page is slower than the goal."""
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory, redis(Path(directory)) as url:
        os.environ |= {"SPILLWAY_VAR": directory, "SPILLWAY_REDIS_URL": url, "SPILLWAY_LOG_LEVEL": "ERROR"}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
        import django

        django.setup()
        client = fill()
        # A server does not carry what filling left behind; its garbage collector must not walk it at every page.
        gc.collect()
        gc.freeze()
        print(f"{'page':22}{'p50 ms':>8}{'p95 ms':>8}{'queries':>9}{'kB':>7}")
        found = {}
        for name, path in paths().items():
            found[name] = measured = measure(client, path)
            print(
                f"{name:22}{measured['p50_ms']:8.0f}{measured['p95_ms']:8.0f}"
                f"{measured['queries']:9.0f}{measured['kB']:7.0f}"
            )
    print(json.dumps(found))
    return int(max(each["p95_ms"] for each in found.values()) > GOAL_MS)


if __name__ == "__main__":
    sys.exit(main())
