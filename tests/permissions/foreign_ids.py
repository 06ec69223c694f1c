"""Foreign ids outside of paths: query, filter, body, nested body, bulk list, cursor and form field."""

from __future__ import annotations

from typing import Any

from tests.permissions.api_rows import ANY, LIST, ROUTE
from tests.permissions.rows import Row, codes

# Asked by another account's people about an object of the own account: whatever comes, the same comes without it.
ANYTHING = codes(0, 0, 0)


def listed(noun: str, holds: str, **query: str) -> Row:
    """A list with a foreign id in its query."""
    return Row(f"api:{noun}-list", "GET", LIST, holds=holds, query=query)


def applied(holds: str, *objects: dict[str, Any], **query: str) -> Row:
    """A document that speaks of a foreign object."""
    return Row("api:apply", "PUT", ANYTHING, holds=holds, body={"objects": list(objects)}, query=query)


def batch(noun: str, holds: str, *items: dict[str, Any], **query: str) -> Row:
    """A bulk list with a foreign object among its items."""
    return Row(f"api:{noun}-batch", "POST", ANYTHING, holds=holds, body={"items": list(items)}, query=query)


def routed(pool: str, holds: str) -> dict[str, Any]:
    """A route of the caller that names a foreign pool."""
    action = {"pools": [{"pool": "api", "weight": 1}, {"pool": pool, "weight": 1}]}
    spec = ROUTE | {"hostname": "api.globex.example", "action": action}
    return {"kind": "Route", "name": "api", "spec": spec} if holds else spec


FOREIGN_POOL = {"kind": "Pool", "name": "spare", "account": "acme", "spec": {"protocol": "http", "backends": []}}
FOREIGN_IDS: tuple[Row, ...] = (
    listed("routes", "all", account="acme"),
    listed("routes", "pool", pool="acme/shop"),
    listed("routes", "pool", pool="shop"),
    listed("routes", "hostname", hostname="shop.acme.example"),
    listed("routes", "all", q="acme"),
    listed("pools", "all", account="acme"),
    listed("pools", "pool", name="shop"),
    listed("backends", "all", account="acme"),
    listed("backends", "pool", pool="shop"),
    listed("servers", "pool", pool="shop"),
    listed("certificates", "all", account="acme"),
    listed("hostnames", "all", account="acme"),
    listed("accounts", "account", name="acme"),
    listed("audit-entries", "all", q="acme"),
    listed("audit-entries", "all", kind="Pool"),
    listed("tokens", "all", account="acme"),
    listed("memberships", "all", account="acme"),
    listed("invitations", "all", account="acme"),
    *(
        listed(noun, "all", cursor="$cursor")
        for noun in ("pools", "routes", "servers", "certificates", "audit-entries", "tokens")
    ),
    Row("api:routes-list", "POST", ANYTHING, holds="pool", body={"name": "x", "spec": routed("acme/shop", "")}),
    Row("api:routes-list", "POST", ANYTHING, holds="all", body={"name": "x", "account": "acme", "spec": ROUTE}),
    Row("api:pools-list", "POST", ANYTHING, holds="all", body={"name": "x", "account": "acme", "spec": {}}),
    Row("api:tokens-list", "POST", ANYTHING, holds="all", body={"name": "x", "role": "viewer", "account": "acme"}),
    Row("api:invitations-list", "POST", ANYTHING, holds="all", body={"email": "a@b.example", "account": "acme"}),
    applied("pool", routed("acme/shop", "pool")),
    applied("all", FOREIGN_POOL),
    applied("all", {"kind": "Account", "name": "acme", "spec": {"title": "x", "kind": "customer"}}),
    applied("all", routed("api", "all"), FOREIGN_POOL),
    applied("all", prune="true", manager="acme"),
    *(
        batch("pools", "spare", {"action": action, "id": "$spare", "spec": {}} , atomic=atomic)
        for action in ("update", "delete")
        for atomic in ("true", "false")
    ),
    batch("pools", "spare", {"action": "delete", "account": "acme", "name": "spare"}, atomic="false"),
    batch("routes", "pool", {"action": "create", "name": "x", "spec": routed("acme/shop", "")}, atomic="false"),
    Row("api:trace", "POST", ANYTHING, holds="all", body={"host": "shop.acme.example", "load_balancer": "front"}),
    Row("api:overflow-what-if", "POST", ANYTHING, holds="pool", body={"pool": "acme/shop"}),
    Row("api:routes-named", "PUT", ANYTHING, {"account": "globex", "name": "api"}, "pool",
        {"spec": routed("acme/shop", "")}, headers=ANY),
    Row("web:route-trace", "GET", LIST, holds="all", query={"host": "shop.acme.example"}),
    Row("web:overflow", "GET", LIST, holds="pool", query={"pool": "$pool"}),
    Row("web:routes", "GET", LIST, holds="all", query={"account": "acme", "q": "shop"}),
    Row("web:routes", "GET", LIST, holds="pool", query={"pool": "acme/shop"}),
    Row("web:pools", "GET", LIST, holds="all", query={"q": "acme", "after": "9/acme/shop"}),
    Row("web:certificates", "GET", LIST, holds="certificate", query={"after": "$certificate"}),
    Row("web:audit", "GET", LIST, holds="all", query={"before": "$entry", "q": "acme"}),
    Row("web:audit-export", "GET", LIST, {"kind": "jsonl"}, "all", query={"q": "acme"}),
    Row("web:search", "GET", LIST, holds="all", query={"q": "shop"}),
    Row("web:invite", "GET", ANYTHING, holds="account", query={"account": "acme"}),
    Row("web:token-new", "GET", ANYTHING, holds="account", query={"account": "acme"}),
    Row("web:route-new", "GET", ANYTHING, holds="all", query={"pool": "acme/shop", "account": "acme"}),
    Row("web:route-check", "POST", ANYTHING, holds="route", form={"route": "$route"}),
    Row("web:pool-servers", "POST", ANYTHING, {"pk": "$theirs"}, "server",
        form={"server": ["$server"], "do": "drain"}),
    Row("web:routes-bulk", "POST", ANYTHING, holds="all",
        form={"route": ["$route"], "do": "delete", "confirm": "shop"}),
    Row("web:pools-bulk", "POST", ANYTHING, holds="all",
        form={"pool": ["$pool"], "do": "delete", "confirm": "shop"}),
    Row("web:switch-account", "POST", ANYTHING, holds="account", form={"account": "acme"}),
    Row("web:pool-new", "POST", ANYTHING, holds="all", form={"/name": "x", "/account": "acme"}),
    Row("web:certificate-new", "POST", ANYTHING, holds="all", form={"/name": "shop", "/account": "acme"}),
)  # fmt: skip
