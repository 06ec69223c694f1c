"""Documents of many customers with pools and routes of every form."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

_WORDS = (
    *("shop", "news", "mail", "cart", "search", "media", "login", "docs", "blog", "api"),
    *("status", "video", "audio", "forum", "wiki", "store", "desk", "chat", "jobs", "maps"),
)
_ROUTES_OF_POOL = 25


def account_names(accounts: int) -> list[str]:
    """`customer-001`, `customer-002` …"""
    return [f"customer-{number:03}" for number in range(1, accounts + 1)]


def account_documents(accounts: int) -> list[Document]:
    """The customers."""
    return [
        {"kind": "Account", "name": name, "spec": {"title": name.replace("-", " ").capitalize(), "kind": "customer"}}
        for name in account_names(accounts)
    ]


def documents_of(account: str, routes: int, *, load_balancer: str, regions: list[str], port: int) -> list[Document]:
    """Pools and routes of one customer; the same every time that they are made with the same arguments.

    Servers listen on 127.0.0.1:`port` and up, as the demo's do.
    """
    pools = max(1, routes // _ROUTES_OF_POOL)
    chance = random.Random(account)  # noqa: S311 - variety, not secrecy
    found = [_pool(account, index, regions, port) for index in range(pools)]
    found += (_route(account, index, pools, load_balancer, chance) for index in range(routes))
    return found


def _pool(account: str, index: int, regions: list[str], port: int) -> Document:
    backends = [
        {
            "region": region,
            "servers": [
                {"name": f"vm-{number}", "address": "127.0.0.1", "port": port + 100 * region_index + number}
                for number in (1, 2, 3)
            ],
        }
        for region_index, region in enumerate(regions)
    ]
    return {"kind": "Pool", "name": f"service-{index + 1}", "account": account, "spec": {"backends": backends}}


def _route(account: str, index: int, pools: int, load_balancer: str, chance: random.Random) -> Document:
    word = _WORDS[index % len(_WORDS)]
    host = f"{word}-{index // 5 // len(_WORDS) + 1}.{account}.example"
    path = ("/", "/static", "/v1/items", "/account", "/health")[index // len(_WORDS) % 5]
    spec: Document = {"load_balancer": load_balancer, "hostname": host, "path": path}
    spec |= _action(index, pools, chance)
    if index % 17 == 0:
        spec["methods"] = ["GET", "HEAD"]
    if index % 23 == 0:
        spec["headers"] = [{"name": "X-Canary", "match": "present"}]
    return {"kind": "Route", "name": f"{word}-{index + 1}", "account": account, "spec": spec}


def _action(index: int, pools: int, chance: random.Random) -> Document:
    if index % 20 == 19:
        return {"action": {"redirect": {"code": 301, "scheme": "https"}}}
    if index % 40 == 18:
        return {"action": {"fixed_response": {"status": 200, "body": "ok\n"}}}
    chosen = chance.sample(range(1, pools + 1), min(pools, 2 if index % 10 == 0 else 1))
    return {"action": {"pools": [{"pool": f"service-{number}", "weight": 100} for number in chosen]}}


def shares(routes: int, accounts: int) -> Iterator[int]:
    """How many of the routes each account gets, as evenly as goes."""
    return (routes // accounts + (number < routes % accounts) for number in range(accounts))
