"""The table, second half: every page with each of its methods; what only shows answers a POST as it does a GET."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.permissions.rows import Codes, Open, Row, codes

LIST = codes(200, 200, 200)
READ_OWN = codes(404, 200, 200)
OF_OPERATORS = codes(404, 404, 200)
# A form, and the same form sent with errors in it.
NEW = codes("403 200 200", "403 200 200", "403 200 200")
NEW_FAULTY = codes("403 422 422", "403 422 422", "403 422 422")
EDIT = codes(404, "403 200 200", "403 200 200")
EDIT_FAULTY = codes(404, "403 422 422", "403 422 422")
# The same where the role is asked before the object.
EDIT_BY_ROLE = codes("403 404 404", "403 200 200", "403 200 200")
EDIT_FAULTY_BY_ROLE = codes("403 404 404", "403 422 422", "403 422 422")
SENT_BY_ROLE = codes("403 404 404", "403 302 302", "403 302 302")
LIFTED = codes("403 302 302", "403 302 302", "403 302 302")  # the next page says that there is no such ban
# The selected rows of another account are refused, one by one.
ALL_REFUSED = codes("403 409 409", "403 302 302", "403 302 302")
SENT = codes(404, "403 302 302", "403 302 302")
# People and tokens are managed by owners; operators do it in every account.
INVITE = codes("403 403 200", "403 403 200", "403 403 200")
INVITE_FAULTY = codes("403 403 422", "403 403 422", "403 403 422")
REMOVE = codes(404, "403 302 302", "403 302 302")  # the editor is the person, who may leave
MANAGE = codes(404, "403 403 302", "403 302 302")
OPERATE = codes(404, 404, "403 200 200")
OPERATED = codes(404, 404, "403 302 302")
PUSHED = codes(403, 403, "403 302 302")
WINDOW = {"/starts_at": "2041-01-01T00:00", "/ends_at": "2041-01-02T00:00", "/reason": "x"}


def shown(url: str, allowed: Codes, holds: str, path: Mapping[str, str] | None = None) -> Iterable[Row]:
    """A page that only shows something."""
    yield Row(f"web:{url}", "GET", allowed, path or {}, holds)
    yield Row(f"web:{url}", "POST", allowed, path or {})


def sent(
    url: str,
    allowed: Codes,
    holds: str = "",
    path: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    **fields: str,
) -> Row:
    """A form that is sent."""
    return Row(f"web:{url}", "POST", allowed, path or {}, holds, form={**(form or {}), **fields})


PAGES: tuple[Row, ...] = (
    Row("/healthz", "GET", Open(200, 200), at="/healthz"),
    Row("/readyz", "GET", Open(200, 200), at="/readyz"),
    Row("/metrics", "GET", Open(200, 200), at="/metrics"),
    *shown("overview", LIST, "all"),
    *shown("reports", codes(302, 302, 302), ""),
    *shown("report", LIST, "all", {"name": "2026-01"}),
    sent("example-load", OPERATED),
    sent("example-remove", OPERATED),
    *shown("search", LIST, "all"),
    *shown("options", LIST, "all", {"kind": "pools"}),
    *shown("siblings", READ_OWN, "pool", {"kind": "pool", "pk": "$pool"}),
    *shown("definition", READ_OWN, "pool", {"kind": "pool", "pk": "$pool"}),
    *shown("used-by", READ_OWN, "pool", {"kind": "pool", "pk": "$pool"}),
    *shown("badges", LIST, "all"),
    *shown("wall", LIST, "all"),
    *shown("changes", LIST, "all"),
    *shown("change", READ_OWN, "entry", {"pk": "$entry"}),
    sent("change-revert", SENT_BY_ROLE, "entry", {"pk": "$entry"}),
    *shown("load-balancers", LIST, "all"),
    *shown("load-balancer", LIST, "all", {"pk": "$loadbalancer"}),
    *shown("routes", LIST, "all"),
    *shown("route-trace", LIST, "all"),
    Row("web:route-new", "GET", NEW, holds="all"),
    sent("route-new", NEW_FAULTY, "all"),
    sent("route-check", READ_OWN, "route", route="$route"),
    sent("routes-bulk", ALL_REFUSED, "all", route="$route", do="maintenance"),
    *shown("route", READ_OWN, "route", {"pk": "$route"}),
    Row("web:route-edit", "GET", EDIT, {"pk": "$route"}, "route"),
    sent("route-edit", EDIT_FAULTY, "route", {"pk": "$route"}),
    *shown("route-sides", READ_OWN, "route", {"pk": "$route"}),
    sent("route-weights", SENT, "route", {"pk": "$route"}, pool="shop"),
    Row("web:route-delete", "GET", EDIT_BY_ROLE, {"pk": "$route"}, "route"),
    sent("route-delete", SENT_BY_ROLE, "route", {"pk": "$route"}, confirm="shop"),
    *shown("network-lists", LIST, "all"),
    *shown("client-bans", LIST, "all"),
    sent("client-ban-lift", LIFTED, region="us-central1", ban="600-2001:db8::1"),
    Row("web:network-list-new", "GET", NEW, holds="all"),
    sent("network-list-new", NEW_FAULTY, "all", form={"/name": ""}),
    *shown("network-list", READ_OWN, "networklist", {"pk": "$networklist"}),
    Row("web:network-list-edit", "GET", EDIT, {"pk": "$networklist"}, "networklist"),
    sent("network-list-edit", EDIT_FAULTY, "networklist", {"pk": "$networklist"}, form={"/spec/entries": "x"}),
    sent("network-list-ban", SENT_BY_ROLE, "networklist", {"pk": "$networklist"}, network="198.51.100.7"),
    sent("network-list-lift", SENT_BY_ROLE, "networklist", {"pk": "$networklist"}, network="192.0.2.0/24"),
    sent("network-list-delete", SENT_BY_ROLE, "networklist", {"pk": "$networklist"}, confirm="offices"),
    *shown("policies", LIST, "all"),
    Row("web:policy-new", "GET", NEW, holds="all"),
    sent("policy-new", NEW_FAULTY, "all", form={"/name": ""}),
    *shown("policy", READ_OWN, "policy", {"pk": "$policy"}),
    sent("policy-fetch-key-set", SENT_BY_ROLE, "policy", {"pk": "$policy"}),
    sent("route-fetch-key-set", SENT_BY_ROLE, "route", {"pk": "$route"}),
    Row("web:policy-edit", "GET", EDIT, {"pk": "$policy"}, "policy"),
    sent("policy-edit", EDIT_FAULTY, "policy", {"pk": "$policy"}, form={"/spec/rules/rewrite/path": "x"}),
    sent("policy-delete", SENT_BY_ROLE, "policy", {"pk": "$policy"}, confirm="web"),
    *shown("pools", LIST, "all"),
    Row("web:pool-new", "GET", NEW, holds="all"),
    sent("pool-new", NEW, "all"),
    sent("pools-bulk", ALL_REFUSED, "all", pool="$pool", do="ready", region="us-central1"),
    *shown("pool", READ_OWN, "pool", {"pk": "$pool"}),
    Row("web:pool-edit", "GET", EDIT_BY_ROLE, {"pk": "$spare"}, "spare"),
    sent("pool-edit", EDIT_BY_ROLE, "spare", {"pk": "$spare"}),
    sent("pool-delete", SENT, "spare", {"pk": "$spare"}, confirm="spare"),
    sent(
        "pool-limit", SENT_BY_ROLE, "pool", {"pk": "$pool"}, region="us-central1", kind="rate", value="9", version="1"
    ),
    sent("pool-servers", SENT, "pool", {"pk": "$pool"}, server="$server", do="weight", weight="9"),
    *shown("grants", OF_OPERATORS, ""),
    *shown("grant", OF_OPERATORS, "grant", {"name": "of-acme"}),
    Row("web:grant-new", "GET", OPERATE),
    sent("grant-new", OPERATED, form={"/name": "new", "/spec/account": "acme", "/spec/tag": "a=b"}),
    Row("web:grant-edit", "GET", OPERATE, {"name": "of-acme"}, "grant"),
    sent(
        "grant-edit",
        OPERATED,
        "grant",
        {"name": "of-acme"},
        form={"/spec/account": "acme", "/spec/tag": "a=b", "version": "1"},
    ),
    sent("grant-delete", OPERATED, "grant", {"name": "of-acme"}, confirm="of-acme"),
    *shown("hostnames", LIST, "all"),
    Row("web:hostname-new", "GET", NEW, holds="all"),
    sent("hostname-new", NEW_FAULTY, form={"/name": "no name"}),
    *shown("hostname", READ_OWN, "hostname", {"pk": "$hostname"}),
    sent("hostname-check", SENT, "hostname", {"pk": "$hostname"}),
    sent("hostname-verify", codes(404, 403, "403 302 302"), "hostname", {"pk": "$hostname"}, reason="x"),
    sent("hostname-release", SENT, "free", {"pk": "$free"}, confirm="free.acme.example"),
    *shown("capacity-tests", LIST, "all"),
    Row("web:capacity-test-new", "GET", NEW, holds="all"),
    sent("capacity-test-new", NEW_FAULTY, "all"),
    sent("capacity-test-check", NEW, "all"),
    *shown("capacity-test", READ_OWN, "capacitytest", {"pk": "$capacitytest"}),
    Row("web:capacity-test-edit", "GET", EDIT_BY_ROLE, {"pk": "$capacitytest"}, "capacitytest"),
    sent("capacity-test-edit", EDIT_FAULTY_BY_ROLE, "capacitytest", {"pk": "$capacitytest"}),
    sent("capacity-test-delete", SENT_BY_ROLE, "capacitytest", {"pk": "$capacitytest"}, confirm="measure"),
    sent("capacity-test-run", SENT_BY_ROLE, "capacitytest", {"pk": "$capacitytest"}),
    sent(
        "capacity-test-compare",
        SENT_BY_ROLE,
        "capacitytest",
        {"pk": "$capacitytest"},
        second="$capacitytest",
        rounds="3",
    ),
    *shown("sizing", LIST, "all"),
    Row("web:blackouts", "GET", LIST),
    sent("blackouts", PUSHED, form=WINDOW),
    sent("blackout-end", PUSHED, path={"pk": "$blackout"}),
    *shown("capacity-runs-compare", codes(302, 302, 302), ""),
    *shown("capacity-comparison", READ_OWN, "comparison", {"pk": "$comparison"}),
    *shown("capacity-run", READ_OWN, "run", {"pk": "$run"}),
    # Whoever sees a run may stop it.
    Row("web:capacity-run-stop", "POST", codes(404, 302, 302), {"pk": "$going"}, "going", by_viewers=True),
    sent("capacity-run-approve", codes(404, 403, "403 302 302"), "going", {"pk": "$going"}),
    Row("web:capacity-run-limit", "GET", READ_OWN, {"pk": "$run"}, "run"),
    sent("capacity-run-limit", SENT, "run", {"pk": "$run"}, margin="10"),
    *shown("capacity-run-export", READ_OWN, "run", {"pk": "$run", "kind": "csv"}),
    *shown("webhooks", LIST, "all"),
    Row("web:webhook-new", "GET", NEW, holds="all"),
    sent("webhook-new", NEW_FAULTY),
    *shown("webhook", READ_OWN, "webhook", {"pk": "$webhook"}),
    Row("web:webhook-edit", "GET", EDIT_BY_ROLE, {"pk": "$webhook"}, "webhook"),
    sent("webhook-edit", EDIT_FAULTY_BY_ROLE, "webhook", {"pk": "$webhook"}),
    sent("webhook-rotate", EDIT_BY_ROLE, "webhook", {"pk": "$webhook"}),
    sent("webhook-test", SENT_BY_ROLE, "webhook", {"pk": "$webhook"}),
    sent("webhook-delete", SENT, "webhook", {"pk": "$webhook"}, confirm="hook"),
    sent("webhook-redeliver", SENT_BY_ROLE, "delivery", {"pk": "$webhook", "delivery": "$delivery"}),
    *shown("overflow", LIST, "all"),
    *shown("regions", OF_OPERATORS, "region"),
    *shown("system", OF_OPERATORS, ""),
    sent("publication-overwrite", OPERATED, path={"pk": "1"}),
    *shown("region", OF_OPERATORS, "region", {"name": "us-central1"}),
    Row("web:region-drain", "GET", OPERATE, {"name": "us-central1"}, "region"),
    sent("region-drain", OPERATE, "region", {"name": "us-central1"}, reason="x"),
    *shown("fleets", OF_OPERATORS, "fleet"),
    *shown("fleet", OF_OPERATORS, "fleet", {"pk": "$fleet"}),
    sent("fleet-push", PUSHED, "", {"pk": "$fleet"}, reason="x"),
    sent("fleet-resume", PUSHED, "", {"pk": "$fleet"}, reason="x"),
    *shown("node", OF_OPERATORS, "node", {"pk": "$node"}),
    *shown("quarantine", OF_OPERATORS, "quarantine"),
    sent("quarantine-try-again", PUSHED, "", {"pk": "$quarantine"}),
    *shown("rollouts", OF_OPERATORS, "rollout"),
    *shown("rollout", OF_OPERATORS, "rollout", {"pk": "$rollout"}),
    sent("push-to-all", PUSHED, "", {"pk": "$rollout"}, reason="x"),
    sent("roll-back", PUSHED, "", {"pk": "$revision"}, reason="x"),
    *shown("static-ips", OF_OPERATORS, "staticip"),
    *shown("requests", LIST, "all"),
    *shown("request-patterns", LIST, "all"),
    *shown("requests-export", LIST, "all", {"kind": "csv"}),
    Row("web:requests-archive", "GET", NEW, {"kind": "jsonl.gz"}, "all"),
    Row("web:requests-archive", "POST", NEW, {"kind": "jsonl.gz"}, "all"),
    Row("web:requests-sql", "GET", NEW, holds="all"),
    # The store in memory, which answers here, has no SQL.
    sent("requests-sql", NEW_FAULTY, "all", sql="SELECT 1", last="1h"),
    Row("web:requests-settings", "GET", LIST, holds="all"),
    sent("requests-settings", NEW_FAULTY, "all", form={"/spec/retention_days": "0", "version": "1"}),
    sent("requests-delete", MANAGE, "", account="acme", before="2026-01-01T00:00", confirm="acme"),
    *shown("log-forwards", LIST, "all"),
    Row("web:log-forward-new", "GET", NEW, holds="all"),
    sent("log-forward-new", NEW_FAULTY),
    Row("web:log-forward-edit", "GET", EDIT_BY_ROLE, {"pk": "$logforward"}, "logforward"),
    sent("log-forward-edit", EDIT_FAULTY_BY_ROLE, "logforward", {"pk": "$logforward"}),
    sent("log-forward-test", SENT_BY_ROLE, "logforward", {"pk": "$logforward"}),
    sent("log-forward-delete", SENT, "logforward", {"pk": "$logforward"}, confirm="elsewhere"),
    *shown("request", codes(404, 404, 404), "", {"record_id": "0192f3a17c1d7e02a"}),
    *shown("audit", LIST, "all"),
    *shown("audit-entry", READ_OWN, "entry", {"pk": "$entry"}),
    *shown("audit-export", LIST, "all", {"kind": "csv"}),
    *shown("certificates", LIST, "all"),
    Row("web:certificate-new", "GET", NEW, holds="all"),
    sent("certificate-new", NEW_FAULTY, "all"),
    Row("web:certificate-renew", "GET", EDIT, {"pk": "$certificate"}, "certificate"),
    sent("certificate-renew", EDIT_FAULTY, "certificate", {"pk": "$certificate"}),
    sent("certificate-delete", SENT, "certificate", {"pk": "$certificate"}, confirm="shop"),
    *shown("own-account", LIST, "all"),
    *shown("accounts", OF_OPERATORS, ""),
    Row("web:account-new", "GET", OPERATE),
    sent("account-new", OPERATED, "", form={"/name": "new", "/spec/title": "New"}),
    *shown("account", READ_OWN, "account", {"name": "acme"}),
    Row("web:account-edit", "GET", OPERATE, {"name": "acme"}),
    sent("account-edit", OPERATED, "", {"name": "acme"}, form={"/spec/title": "New", "version": "2"}),
    Row("web:account-suspend", "GET", OPERATE, {"name": "acme"}),
    sent("account-suspend", OPERATED, "", {"name": "acme"}, reason="x"),
    Row("web:account-impersonate", "GET", OF_OPERATORS, {"name": "acme"}),
    Row(
        *("web:account-impersonate", "POST", codes(404, 404, 302), {"name": "acme"}),
        form={"reason": "x"},
        by_viewers=True,
    ),
    *shown("people", LIST, "all"),
    Row("web:invite", "GET", INVITE, holds="all"),
    sent("invite", INVITE, form={"/email": "a@example.com", "/role": "viewer"}),
    sent("person-role", MANAGE, "person", {"pk": "$person"}, role="viewer"),
    sent("person-remove", REMOVE, "person", {"pk": "$person"}),
    sent("invitation-take-back", MANAGE, "invitation", {"pk": "$invitation"}),
    *shown("tokens", LIST, "all"),
    Row("web:token-new", "GET", INVITE, holds="all"),
    sent("token-new", INVITE_FAULTY, "all"),
    sent("token-revoke", MANAGE, "token", {"pk": "$token"}, confirm="for editor"),
    Row(
        *("web:switch-account", "POST", codes(404, 302, 404)),
        form={"account": "acme"},
        odd={"suspended": 302},  # a person may have another account, and must be able to go there
    ),
    sent("stop-impersonating", codes(302, 302, 302)),
)
