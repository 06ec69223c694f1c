"""The pages of the product: where each is found, and what has to stand there beside the tutorial."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

# By the name of their URL; `{}` is the id of the first object of what the API lists there.
PAGES = {
    "overview": ("/", ""),
    "wall": ("/wall", ""),
    "changes": ("/changes", ""),
    "change": ("/changes/{}", "audit-entries?kind=Pool"),
    "load-balancers": ("/load-balancers", ""),
    "load-balancer": ("/load-balancers/{}", "load-balancers"),
    "load-balancer-new": ("/load-balancers/new", ""),
    "load-balancer-edit": ("/load-balancers/{}/edit", "load-balancers"),
    "import": ("/import", ""),
    "listener-new": ("/load-balancers/{}/listeners/new", "load-balancers"),
    "routes": ("/routes", ""),
    "route": ("/routes/{}", "routes"),
    "route-new": ("/routes/new", ""),
    "route-trace": ("/routes/trace?host=shop.acme.example&path=/cart", ""),
    "definition": ("/definition/pool/{}?tab=generated", "pools"),
    "used-by": ("/used-by/pool/{}", "pools"),
    "route-edit": ("/routes/{}/edit", "routes"),
    "pools": ("/pools", ""),
    "pool": ("/pools/{}", "pools"),
    "pool-new": ("/pools/new", ""),
    "pool-edit": ("/pools/{}/edit", "pools"),
    "pool-replacements": ("/pools/{}/replacements", "pools"),
    "route-canary": ("/routes/{}/canary", "routes"),
    "policies": ("/policies", ""),
    "policy": ("/policies/{}", "policies"),
    "policy-new": ("/policies/new", ""),
    "policy-edit": ("/policies/{}/edit", "policies"),
    "network-lists": ("/network-lists", ""),
    "network-list": ("/network-lists/{}", "network-lists"),
    "network-list-new": ("/network-lists/new", ""),
    "network-list-edit": ("/network-lists/{}/edit", "network-lists"),
    "client-bans": ("/client-bans", ""),
    "alerts": ("/alerts", ""),
    "alert": ("/alerts/{}", "alerts?state=firing"),
    "status-pages": ("/status-pages", ""),
    "status-page": ("/status-pages/{}", "status-pages"),
    "status-page-new": ("/status-pages/new", ""),
    "status-page-edit": ("/status-pages/{}/edit", "status-pages"),
    "incident-new": ("/status-pages/{}/incidents/new?planned=1", "status-pages"),
    "alert-rules": ("/alerts/rules", ""),
    "alert-rule-new": ("/alerts/rules/new?name=pool-down", ""),
    "alert-rule-edit": ("/alerts/rules/{}/edit", "alert-rules"),
    "alert-channels": ("/alerts/channels", ""),
    "alert-channel": ("/alerts/channels/{}", "alert-channels"),
    "alert-channel-new": ("/alerts/channels/new", ""),
    "alert-channel-edit": ("/alerts/channels/{}/edit", "alert-channels"),
    "hostnames": ("/hostnames", ""),
    "grants": ("/grants", ""),
    "grant-new": ("/new-grant", ""),
    "hostname": ("/hostnames/{}", "hostnames"),
    "hostname-new": ("/hostnames/new", ""),
    "overflow": ("/overflow", ""),
    "regions": ("/regions", ""),
    "region-new": ("/new-region", ""),
    "region-edit": ("/regions/{}/edit", "regions"),
    "region": ("/regions/us-central1", ""),
    "system": ("/system", ""),
    "region-drain": ("/regions/us-central1/drain", ""),
    "fleets": ("/fleets", ""),
    "fleet-new": ("/fleets/new", ""),
    "fleet": ("/fleets/{}", "fleets"),
    "fleet-edit": ("/fleets/{}/edit", "fleets"),
    "node": ("/nodes/{}", "nodes"),
    "node-new": ("/nodes/new", ""),
    "enrolment": ("/enrolment", ""),
    "node-enrol": ("/enrolment/new", ""),
    "quarantine": ("/quarantine", ""),
    "rollouts": ("/rollouts", ""),
    "rollout": ("/rollouts/{}", "rollouts"),
    "schedules": ("/schedules", ""),
    "schedules-calendar": ("/schedules/calendar", ""),
    "schedule": ("/schedules/{}", "schedules"),
    "schedule-new": ("/schedules/new", ""),
    "schedule-edit": ("/schedules/{}/edit", "schedules"),
    "static-ips": ("/static-ips", ""),
    "static-ip": ("/static-ips/{}", "static-ips"),
    "static-ip-new": ("/static-ips/new", ""),
    "static-ip-edit": ("/static-ips/{}/edit", "static-ips"),
    "address-pool-new": ("/address-pools/new", ""),
    "cloud-accounts": ("/cloud-accounts", ""),
    "cloud-account-new": ("/cloud-accounts/new", ""),
    "adopt": ("/adopt", ""),
    "stacks": ("/stacks", ""),
    "stack": ("/stacks/{}", "stacks"),
    "stack-new": ("/stacks/new", ""),
    "stack-edit": ("/stacks/{}/edit", "stacks"),
    "portability": ("/portability/{}", "load-balancers"),
    "export": ("/export/{}", "load-balancers"),
    "zones": ("/zones", ""),
    "zone": ("/zones/{}", "zones"),
    "zone-new": ("/zones/new", ""),
    "zone-edit": ("/zones/{}/edit", "zones"),
    "zone-difference": ("/zones/{}/difference", "zones"),
    "record-new": ("/zones/{}/records/new", "zones"),
    "record-edit": ("/records/{}/edit", "records"),
    "requests": ("/requests?account=acme", ""),
    "request": ("/requests/{}?account=acme", "request-logs?account=acme"),
    "requests-sql": ("/requests/sql", ""),
    "requests-settings": ("/requests/settings", ""),
    "request-patterns": ("/requests/patterns", ""),
    "log-forwards": ("/log-forwards", ""),
    "log-forward-new": ("/log-forwards/new", ""),
    "saved-searches": ("/requests/saved", ""),
    "saved-search-new": ("/requests/saved/new?q=status%3E%3D500", ""),
    "audit": ("/audit", ""),
    "capacity-tests": ("/capacity-tests", ""),
    "capacity-test": ("/capacity-tests/{}", "capacity-tests"),
    "capacity-test-new": ("/capacity-tests/new", ""),
    "capacity-test-edit": ("/capacity-tests/{}/edit", "capacity-tests"),
    "blackouts": ("/blackouts", ""),
    "report": (f"/reports/{datetime.now(UTC):%Y-%m}", ""),
    "sizing": ("/sizing?rate=30&margin=10&n_minus_1=1", ""),
    "webhooks": ("/webhooks", ""),
    "webhook-new": ("/webhooks/new", ""),
    "audit-entry": ("/audit/{}", "audit-entries"),
    "own-account": ("/account", ""),
    "accounts": ("/accounts", ""),
    "account": ("/accounts/acme", ""),
    "account-new": ("/new-account", ""),
    "account-edit": ("/accounts/acme/edit", ""),
    "account-suspend": ("/accounts/acme/suspend", ""),
    "account-impersonate": ("/accounts/acme/impersonate", ""),
    "people": ("/people", ""),
    "invite": ("/people/invite", ""),
    "tokens": ("/tokens", ""),
    "token-new": ("/tokens/new", ""),
    "certificates": ("/certificates", ""),
    "certificate-new": ("/certificates/new", ""),
    "certificate-authority-new": ("/certificate-authorities/new", ""),
}
# URLs without a page of their own: answers to forms, pieces of pages, and sign-in, which is looked at signed out.
PARTS = {
    # There is no saved search; tests/interfaces/web/test_pages_saved_searches.py looks at it.
    *("saved-search", "saved-search-delete"),
    # There is no incident; tests/e2e/test_status_page.py looks at one, and at what visitors see.
    *("incident", "incident-delete", "status-page-delete"),
    # There is no grant; its form is that of grant-new.
    *("grant", "grant-edit", "grant-delete"),
    *("hostname-check", "hostname-verify", "hostname-release", "policy-fetch-key-set", "route-fetch-key-set"),
    *("change-revert", "region-delete", "badges"),
    *("sign-in", "sign-out", "search", "options", "siblings"),
    *("route-check", "route-delete", "pool-servers", "pool-delete", "pool-limit"),
    # There is no replacement; tests/e2e/test_replacement_looks.py looks at one.
    *("replacement", "replacement-continue", "replacement-stop", "replacement-resume"),
    *("replacement-reverse", "replacement-end"),
    # There is no canary; tests/e2e/test_canary_looks.py looks at one.
    *("canary", "canary-hold", "canary-resume", "canary-promote", "canary-abort"),
    # The form of certificate-new under another heading; there is no certificate to renew.
    *("certificate-renew", "certificate-delete", "certificate-authority-edit", "certificate-authority-delete"),
    *("audit-export", "requests-export", "requests-archive", "requests-delete", "blackout-end", "quarantine-try-again"),
    # There is no run yet; what runs look like is looked at in test_capacity_looks.py.
    *("capacity-run", "capacity-runs-compare", "capacity-comparison", "capacity-run-limit"),
    *("capacity-run-stop", "capacity-run-approve", "capacity-run-export"),
    *("capacity-test-check", "capacity-test-run", "capacity-test-delete", "capacity-test-compare"),
    *("alerts-acknowledge", "alert-acknowledge", "alert-silence", "alert-silence-end"),
    *("alert-rule-switch", "alert-rule-delete", "alert-channel-test", "alert-channel-delete"),
    *("import-apply", "example-load", "example-remove"),
    "reports",  # leads to the report of this month
    # There is no forward; its form is that of log-forward-new.
    *("log-forward-edit", "log-forward-delete", "log-forward-test"),
    # There is no webhook; their form is that of webhook-new.
    *("webhook", "webhook-edit", "webhook-rotate", "webhook-test", "webhook-delete", "webhook-redeliver"),
    *("routes-bulk", "pools-bulk"),
    *("schedule-preview", "schedules-bulk", "schedule-run", "schedule-pause", "schedule-resume", "schedule-delete"),
    *("schedule-sign", "trigger-new", "trigger-rotate", "trigger-delete", "schedule-run-retry"),
    *("invitation", "switch-account", "stop-impersonating", "token-revoke"),
    *("person-role", "person-remove", "invitation-take-back"),
    *("policy-delete", "network-list-delete", "network-list-ban", "network-list-lift", "route-weights", "route-sides"),
    "client-ban-lift",
    *("fleet-push", "fleet-resume", "fleet-delete", "node-delete", "roll-back", "push-to-all", "publication-overwrite"),
    *("load-balancer-delete", "listener-delete"),
    # The forms of those that are new under another heading, and what is done from pages.
    *("listener-edit", "node-edit"),
    *("node-revoke", "enrolment-withdraw", "authority-rotate", "authority-retire"),
    *("cloud-account-edit", "cloud-account-delete", "cloud-account-test", "address-pool-edit", "address-pool-delete"),
    *("static-ip-move", "static-ip-release", "static-ip-delete"),
    *("zone-test", "zone-repair", "zone-delete", "record-delete"),
    *("stack-plan", "stack-check", "stack-destroy", "stack-delete", "stack-unlock"),
    # Runs, revisions and states come from workers; tests/interfaces/web/test_pages_clouds.py looks at them.
    *(
        "stack-run",
        "stack-revision",
        "stack-state",
        "stack-run-approve",
        "stack-run-discard",
        "stack-run-cancel",
        "stack-run-retry",
    ),
}
# What the tutorial does not have: policies, a cloud, and a zone on a name server in memory.
CLOUDS = [
    {
        "kind": "NetworkList",
        "name": "office",
        "spec": {"entries": [{"network": "192.0.2.0/24", "reason": "The office"}]},
    },
    {
        "kind": "Policy",
        "name": "web",
        "spec": {
            "rules": {
                "security_headers": {"no_sniff": True, "frames": "deny"},
                "access": {"deny": ["office"]},
                "cors": {"origins": ["https://app.example.com"]},
            }
        },
    },
    {"kind": "AlertRule", "name": "slow-shop", "spec": {"watches": "pool_slow", "only": ["shop*"], "threshold": 300}},
    # Each account has used so much, so that there is an alert.
    {"kind": "AlertRule", "name": "quota-used", "spec": {"watches": "quota_used", "threshold": 1}},
    {
        "kind": "AlertChannel",
        "name": "team",
        "spec": {"type": "webhook", "url": "https://hooks.example/in", "secret": "whsec_" + "QUJD" * 10},
    },
    {"kind": "StatusPage", "name": "front", "spec": {"title": "Front", "rules": ["pool-down"]}},
    {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:PROD"}},
    {
        "kind": "Stack",
        "name": "aws-frankfurt",
        "spec": {"cloud_account": "prod", "cloud_region": "eu-central-1", "region": "europe-west1"},
    },
    {"kind": "StaticIP", "name": "front", "spec": {"address": "192.0.2.10", "protected": True}},
    {
        "kind": "Zone",
        "name": "example",
        "spec": {"domain": "example.net", "driver": "memory", "tags": {"customer": "acme"}},
    },
    {
        "kind": "Record",
        "name": "www",
        "spec": {"zone": "example", "label": "www", "type": "A", "values": ["192.0.2.80", "192.0.2.81"]},
    },
    {"kind": "Record", "name": "shop", "spec": {"zone": "example", "label": "shop", "type": "A", "static_ip": "front"}},
]


# Their forms are those of the pages that make such an object: `make test` looks at those, `make test-all` at both.
EDITS = {name for name in PAGES if name.endswith("-edit") and f"{name.removesuffix('-edit')}-new" in PAGES}
# Fourteen forms have one template and differ by their fields, two pages ask for a reason: `make test` looks at four
# forms, with the most kinds of fields, and at one of the two.
ALIKE = EDITS | {
    *("address-pool-new", "alert-channel-new", "certificate-authority-new", "cloud-account-new", "incident-new"),
    *("load-balancer-new", "node-new", "region-new", "static-ip-new", "status-page-new", "account-impersonate"),
}

# Whatever stands on these stands on another page as well: each kind of element, class and role. `make test` opens them
# and sees that they fit a phone; what axe-core finds there, `make test-all` says.
FAMILIAR = {
    *("changes", "load-balancers", "import", "route", "definition", "used-by", "pools", "route-canary", "policies"),
    *("policy", "network-lists", "network-list", "network-list-new", "client-bans", "alert", "status-pages"),
    *("alert-rules", "alert-rule-new", "alert-channels", "alert-channel", "hostnames", "grants", "grant-new"),
    *("hostname", "hostname-new", "region-drain", "fleet-new", "fleet", "enrolment", "node-enrol", "quarantine"),
    *("rollouts", "schedules", "static-ip", "cloud-accounts", "adopt", "stacks", "stack", "portability", "export"),
    *("zones", "zone", "zone-new", "record-new", "requests-settings", "request-patterns", "log-forwards"),
    *("saved-searches", "saved-search-new", "audit", "capacity-tests", "blackouts", "sizing", "webhooks"),
    *("webhook-new", "own-account", "accounts", "account-new", "account-suspend", "tokens"),
}
# Of the familiar ones, what is made by the same few templates: a table and its filters, a form and its fields, the page
# of one object, a question for a reason. `make test` opens others of each, `make test-all` these as well.
PLAIN = {
    *("definition", "used-by", "policies", "network-list", "alert-rules", "alert-channel", "hostname", "static-ip"),
    *("rollouts", "stacks", "portability", "export", "requests-settings", "blackouts", "sizing", "tokens", "audit"),
    *("changes", "load-balancers", "network-lists", "status-pages", "alert-channels", "grants", "hostnames", "zones"),
    *("quarantine", "schedules", "cloud-accounts", "log-forwards", "saved-searches", "capacity-tests", "webhooks"),
    *("accounts", "enrolment", "adopt"),
    *("network-list-new", "alert-rule-new", "grant-new", "hostname-new", "fleet-new", "node-enrol", "zone-new"),
    *("saved-search-new", "webhook-new", "account-new", "account-suspend"),
}


def paths(first_id: Callable[[str], str]) -> dict[str, str]:
    """The path of every page; `first_id` says the id of the first object that the API lists there."""
    return {name: path.format(first_id(listed) if listed else "") for name, (path, listed) in PAGES.items()}


def of_first(listed: str) -> str:
    """The question of the API for the first object; `listed` may be narrowed by a query."""
    return f"/api/v1/{listed}{'&' if '?' in listed else '?'}limit=1"
