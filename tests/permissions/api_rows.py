"""The table, first half: every URL of the API with each of its methods."""

from __future__ import annotations

from tests.permissions.rows import Open, Row, codes
from tests.permissions.urls import METHODS

# Everybody reads a list; it holds what the caller may see, and nothing of it shows what they may not.
LIST = codes(200, 200, 200)
# Load balancers, listeners and regions are named in everybody's routes and pools.
SHARED = codes(200, 200, 200)
# Plans are their account's alone: they may hold keys.
OF_ACCOUNT = codes(404, 200, 404)
SEND = codes("403 404 404", "403 202 202", "403 202 202")
CHANGE = codes("403 200 200", "403 200 200", "403 200 200")
PUSH = codes(404, 404, "403 202 202")
APPLY_PLAN = codes("403 404 404", "403 200 200", "403 404 404")
READ_OWN = codes(404, 200, 200)
OF_OPERATORS = codes(404, 404, 200)
WRITE_OWN = codes(404, "403 200 200", "403 200 200")
NO_KEY_SET = codes(404, "403 409 409", "403 409 409")
# There is no such ban, so nobody's is lifted.
NO_PUBLICATION = codes(403, 403, "403 404 404")
NO_BAN = codes("403 404 404", "403 404 404", "403 404 404")
# A PUT by name makes what is not there, and nobody makes anything in another account.
PUT_NAMED = codes("403 422 422", "403 200 200", "403 200 200")
DELETE_OWN = codes(404, "403 204 204", "403 204 204")
CREATE = codes("403 201 201", "403 201 201", "403 201 201")
# People and tokens are managed by owners; operators do it in every account.
MANAGE = codes(404, "403 403 200", "403 200 200")
REMOVE = codes(404, "403 403 204", "403 204 204")
INVITE = codes("403 403 201", "403 403 201", "403 403 201")
OPERATE = codes(403, 403, "403 200 200")
OWN_ONLY = codes("403 403 200", "403 403 200", "403 403 200")
NO_SQL = codes("403 422 422", "403 422 422", "403 422 422")

ANY, WHY = {"If-Match": "*"}, {"X-Change-Reason": "x"}
ROUTE = {
    "load_balancer": "front",
    "hostname": "shop.acme.example",
    "path": "/",
    "action": {"fixed_response": {"status": 200, "body": "x"}},
}
NEW_ROUTE = ROUTE | {"hostname": "new.example"}
SPARE = {"protocol": "http", "backends": [], "balance": "roundrobin"}
NAMED_SHOP, NAMED_SPARE = {"account": "acme", "name": "shop"}, {"account": "acme", "name": "spare"}

CONFIGURATION = {"files": {"haproxy.cfg": "defaults\n mode http\n"}, "fleets": ["us-central1"]}
OF_NOBODY = {"change": "no-such-change"}
OF_US = {"fleet": "us-central1"}
HOOK = {"url": "https://hooks.example/in"}
OF_FORWARD = {"pk": "$logforward"}
OF_HOOK, OF_DELIVERY = {"pk": "$webhook"}, {"pk": "$webhook", "delivery": "$delivery"}


def detail(noun: str, holds: str, *, of_operators: bool = False) -> Row:
    """GET one object by its id."""
    allowed = OF_OPERATORS if of_operators else READ_OWN
    return Row(f"api:{noun}-detail", "GET", allowed, {"pk": f"${holds}"}, holds)


def shared(noun: str, holds: str) -> Row:
    """GET one object that every account may see."""
    return Row(f"api:{noun}-detail", "GET", SHARED, {"pk": f"${holds}"})


LISTED = (
    *("audit-entries", "backends", "hostnames", "invitations", "listeners", "memberships", "revisions", "rollouts"),
    *("servers", "tokens"),
)
API: tuple[Row, ...] = (
    *(Row(f"api:{noun}-list", "GET", LIST, holds="all") for noun in LISTED),
    detail("audit-entries", "entry"),
    detail("backends", "backend"),
    detail("hostnames", "hostname"),
    detail("servers", "server"),
    detail("revisions", "revision", of_operators=True),
    detail("rollouts", "rollout", of_operators=True),
    shared("listeners", "listener"),
    Row(
        "api:apply",
        "PUT",
        codes("403 200 200", "403 200 200", "403 200 200"),
        body={"objects": [{"kind": "Pool", "name": "new", "spec": SPARE}]},
    ),
    Row("api:import", "POST", codes(403, 403, "403 200 200"), body=CONFIGURATION),
    Row("api:pools-overflow", "GET", READ_OWN, {"pk": "$pool"}, "pool"),
    Row("api:pools-named-overflow", "GET", READ_OWN, NAMED_SHOP, "pool"),
    Row("api:pools-health", "GET", READ_OWN, {"pk": "$pool"}, "pool"),
    Row("api:pools-named-health", "GET", READ_OWN, NAMED_SHOP, "pool"),
    Row("api:pools-objective", "GET", READ_OWN, {"pk": "$pool"}, "pool"),
    Row("api:routes-objective", "GET", READ_OWN, {"pk": "$route"}, "route"),
    Row("api:fleets-health", "GET", OF_OPERATORS, {"name": "us-central1"}),
    Row("api:consoles-health", "GET", LIST),
    Row("api:nodes-health", "GET", OF_OPERATORS, {"name": "us-1"}),
    # Nobody has said how nodes know this console, no node here has a certificate, and no authority was made.
    Row("api:nodes-enrolment-token", "POST", codes(403, 403, "403 409 409"), {"name": "us-1"}, body=OF_US),
    Row("api:nodes-certificates", "GET", LIST, {"name": "us-1"}),
    Row("api:nodes-revoke", "POST", codes(403, 403, "403 409 409"), {"name": "us-1"}),
    Row("api:node-authorities", "GET", LIST),
    Row("api:node-authorities-rotate", "POST", codes(403, 403, "403 201 201")),
    Row("api:node-authorities-retire", "POST", codes("403 404 404", "403 404 404", "403 404 404"), {"pk": "77"}),
    Row("enrol", "POST", Open(400, 400)),
    Row("enrol-ca", "GET", Open(409, 409)),
    Row("api:pools-limit", "GET", READ_OWN, NAMED_SHOP | {"region": "us-central1"}, "pool"),
    Row(
        *("api:pools-limit", "PATCH", WRITE_OWN, NAMED_SHOP | {"region": "us-central1"}, "pool"),
        body={"kind": "rate", "value": 9},
        headers=ANY,
    ),
    Row("api:openapi", "GET", Open(200, 200)),
    detail("memberships", "person"),
    Row("api:memberships-detail", "PATCH", MANAGE, {"pk": "$person"}, "person", {"role": "viewer"}, headers=ANY),
    Row("api:memberships-detail", "DELETE", REMOVE, {"pk": "$person"}, "person", headers=ANY),
    Row("api:invitations-list", "POST", INVITE, body={"email": "x@example.com", "role": "viewer"}),
    detail("invitations", "invitation"),
    Row("api:invitations-detail", "DELETE", REMOVE, {"pk": "$invitation"}, "invitation"),
    Row("api:tokens-list", "POST", INVITE, body={"name": "new", "role": "viewer"}),
    detail("tokens", "token"),
    Row("api:tokens-detail", "DELETE", REMOVE, {"pk": "$token"}, "token"),
    Row("api:hostnames-list", "POST", CREATE, body={"name": "new.example"}),
    Row("api:hostnames-detail", "DELETE", DELETE_OWN, {"pk": "$free"}, "free", headers=ANY),
    Row("api:hostnames-check", "POST", WRITE_OWN, {"pk": "$hostname"}, "hostname", headers=ANY),
    Row(
        "api:hostnames-verification",
        "POST",
        codes(404, 403, "403 200 200"),
        {"pk": "$hostname"},
        "hostname",
        {"reason": "x"},
        headers=ANY,
    ),
    Row("api:hostnames-cooldown", "DELETE", codes(404, 403, "403 204 204"), {"pk": "$cooling"}, "cooling", headers=ANY),
    Row("api:webhooks-list", "GET", LIST, holds="all"),
    Row("api:webhooks-list", "POST", CREATE, body={"name": "new", "spec": HOOK}),
    detail("webhooks", "webhook"),
    *(
        Row("api:webhooks-detail", method, WRITE_OWN, OF_HOOK, "webhook", {"spec": HOOK}, headers=ANY)
        for method in ("PUT", "PATCH")
    ),
    Row("api:webhooks-detail", "DELETE", DELETE_OWN, OF_HOOK, "webhook", headers=ANY),
    Row("api:webhooks-rotate", "POST", WRITE_OWN, OF_HOOK, "webhook", headers=ANY),
    Row("api:webhooks-test", "POST", SEND, OF_HOOK, "webhook"),
    Row("api:webhooks-deliveries", "GET", READ_OWN, OF_HOOK, "webhook"),
    Row("api:webhooks-delivery", "GET", READ_OWN, OF_DELIVERY, "delivery"),
    Row("api:webhooks-redeliver", "POST", SEND, OF_DELIVERY, "delivery"),
    Row("api:network-lists-ban", "POST", WRITE_OWN, {"pk": "$networklist"}, "networklist", {"network": "198.51.100.7"}),
    Row(
        "api:network-lists-lift", "POST", WRITE_OWN, {"pk": "$networklist"}, "networklist", {"network": "192.0.2.0/24"}
    ),
    Row("api:policies-fetch-key-set", "POST", NO_KEY_SET, {"pk": "$policy"}, "policy", headers=ANY),
    Row("api:routes-fetch-key-set", "POST", NO_KEY_SET, {"pk": "$route"}, "route", headers=ANY),
    Row("api:regions-drain", "POST", OPERATE, {"name": "us-central1"}),
    Row("api:regions-undrain", "POST", OPERATE, {"name": "us-central1"}),
    Row("api:regions-latency", "PUT", OPERATE, {"name": "us-central1", "to": "europe-west1"}, body={"ms": 90}),
    Row("api:publications", "GET", LIST),
    Row("api:publications-overwrite", "POST", NO_PUBLICATION, {"pk": "1"}, body={"conflict": "0123456789abcdef"}),
    Row("api:client-bans", "GET", LIST, holds="all"),
    Row("api:client-bans-lift", "POST", NO_BAN, body={"region": "us-central1", "ban": "600-2001:db8::1"}),
    Row("api:overflow", "GET", LIST, holds="all"),
    *(
        Row(f"api:request-logs-{part}", "GET", LIST, holds="all")
        for part in ("list", "histogram", "facets", "settings")
    ),
    Row("api:request-logs-pattern", "GET", LIST, {"name": "uneven-servers"}, holds="all"),
    Row("api:log-forwards-list", "GET", LIST, holds="all"),
    Row("api:log-forwards-list", "POST", CREATE, body={"name": "new", "spec": {"url": "https://logs.example/v1/logs"}}),
    detail("log-forwards", "logforward"),
    Row(
        *("api:log-forwards-detail", "PATCH", WRITE_OWN, OF_FORWARD, "logforward"),
        body={"spec": {"enabled": False}},
        headers=ANY,
    ),
    Row("api:log-forwards-detail", "DELETE", DELETE_OWN, OF_FORWARD, "logforward", headers=ANY),
    Row("api:log-forwards-test", "POST", WRITE_OWN, OF_FORWARD, "logforward"),
    Row("api:request-logs-detail", "GET", codes(404, 404, 404), {"record": "0123456789ab7abc8123456789abcdef"}),
    # The store in memory, which answers here, has no SQL.
    Row("api:request-logs-sql", "POST", NO_SQL, body={"sql": "SELECT 1"}, only_asks=True),
    Row(
        *("api:request-logs-settings", "PATCH", CHANGE),
        body={"spec": {"retention_days": 30}},
        headers={"If-Match": "*"},
    ),
    Row("api:request-logs-archive", "GET", CHANGE, {"kind": "jsonl.gz"}, "all"),
    Row("api:request-logs-delete", "POST", OWN_ONLY, body={"before": "2026-01-01T00:00:00Z"}),
    Row("api:overflow-what-if", "POST", LIST, holds="all", body={}, only_asks=True),
    Row("api:servers-detail", "PATCH", WRITE_OWN, {"pk": "$server"}, "server", {"weight": 7}, headers=ANY),
    *(Row("/api/v1/", method, Open(404, 404), at="/api/v1/nothing") for method in METHODS),
    *(Row("/^api/", method, Open(404, 404), at="/api/v2/routes") for method in METHODS),
    Row("api:trace", "POST", LIST, holds="all", body={"host": "shop.acme.example"}, only_asks=True),
    Row("api:routes-batch", "POST", CHANGE, body={"items": [{"action": "create", "name": "new", "spec": NEW_ROUTE}]}),
    Row("api:pools-batch", "POST", CHANGE, body={"items": [{"action": "create", "name": "new", "spec": SPARE}]}),
    # Whoever made a change sees it, whatever else the token may read; nobody here made this one.
    Row("api:changes-detail", "GET", codes(404, 404, 404), OF_NOBODY, odd={"narrow": 404}),
    Row("api:changes-revert", "POST", codes(*["403 404 404"] * 3), OF_NOBODY, odd={"narrow": 404}),
    Row("api:quarantine-list", "GET", LIST, holds="all"),
    Row(
        "api:quarantine-try-again",
        "POST",
        codes("403 404 404", "403 403 403", "403 202 202"),
        {"pk": "$quarantine"},
        "quarantine",
    ),
    Row("api:revisions-roll-back", "POST", PUSH, {"pk": "$revision"}, "revision", headers=WHY),
    Row("api:rollouts-push-to-all", "POST", codes(404, 404, "403 409 409"), {"pk": "$rollout"}, "rollout", headers=WHY),
    Row("api:fleets-push", "POST", PUSH, {"name": "us-central1"}, "fleet", headers=WHY),
    Row("api:fleets-resume", "POST", codes(404, 404, "403 409 409"), {"name": "us-central1"}, "fleet", headers=WHY),
    Row("api:plans-list", "GET", LIST, holds="all"),
    Row("api:plans-detail", "GET", OF_ACCOUNT, {"plan": "$storedplan"}, "storedplan"),
    Row(
        "api:plans-apply",
        "POST",
        codes("403 404 404", "403 200 200", "403 404 404"),
        {"plan": "$storedplan"},
        "storedplan",
    ),
)
