"""The `?` of each page: which document explains it."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

# By the beginning of a page's name in urls.py; the longest that fits wins.
PAGES = {
    "alert": "use/alerts",
    "account": "operate/accounts",
    "accounts": "operate/accounts",
    "address-pool": "use/static-ips",
    "adopt": "use/clouds",
    "audit": "operate/audit",
    "blackout": "use/capacity-tests",
    "capacity": "use/capacity-tests",
    "change": "use/rollouts#changes",
    "certificate": "use/certificates",
    "certificate-authority": "use/certificates#name-who-issues",
    "cloud-account": "use/clouds",
    "example": "start/first-day",
    "schedule-run": "use/schedules",
    "fleet": "use/rollouts",
    "grant": "operate/accounts",
    "hostname": "use/traffic#hostnames",
    "import": "use/import",
    "export": "use/export",
    "invit": "operate/accounts",
    "listener": "use/listeners",
    "load-balancer": "use/traffic",
    "mfa": "operate/accounts",
    "node": "use/rollouts",
    "node-enrol": "operate/nodes#enrol-a-machine",
    "node-revoke": "operate/nodes#revoke-a-node",
    "openid": "operate/accounts",
    "overflow": "use/overflow",
    "overview": "start/first-day",
    "own-account": "operate/accounts",
    "people": "operate/accounts",
    "person": "operate/accounts",
    "log-forward": "use/log-forwards",
    "network-list": "use/policies#access-by-network",
    "client-ban": "use/policies#limit-per-client",
    "polic": "use/policies",
    "pool": "use/traffic#pools-and-health-checks",
    "pool-replacements": "use/servers#replace-servers",
    "replacement": "use/servers#replace-servers",
    "canar": "use/canaries",
    "route-canary": "use/canaries",
    "portability": "use/clouds",
    "authority": "operate/nodes#rotate-the-authority",
    "enrolment": "operate/nodes",
    "publication": "use/export#published-in-etcd",
    "push-to-all": "use/rollouts#waves",
    "quarantine": "use/rollouts#quarantine",
    "report": "use/reports",
    "record": "use/dns",
    "region": "use/overflow",
    "request": "use/requests",
    "saved-search": "use/requests",
    "roll": "use/rollouts",
    "route": "use/traffic#routes",
    "schedule": "use/schedules",
    "sign": "operate/accounts",
    "sizing": "use/capacity-tests",
    "socialaccount": "operate/accounts",
    "stack": "use/clouds",
    "static-ip": "use/static-ips",
    "status-page": "use/status",
    "incident": "use/status",
    "system": "operate/monitoring#the-system-page",
    "token": "use/api",
    "trigger": "use/schedules",
    "definition": "use/traffic#definition",
    "used-by": "use/traffic#used-by",
    "usersessions": "operate/accounts",
    "wall": "operate/monitoring#the-wall-screen",
    "webhook": "use/webhooks",
    "zone": "use/dns",
}


def page_of(url_name: str) -> str:
    """The document about a page, without `.md`, with an anchor where only a part is about it; empty where none is."""
    fitting = (name for name in PAGES if url_name.startswith(name))
    return PAGES.get(max(fitting, key=len, default=""), "")


def help_link(request: HttpRequest) -> dict[str, str]:
    """`help_url` for the frame of every page, where documents can be reached."""
    match = request.resolver_match
    if not settings.DOCS_URL or match is None:
        return {}
    page, _, anchor = page_of(match.url_name or "").partition("#")
    path = f"{page}/" if page else ""
    return {"help_url": settings.DOCS_URL + path + (f"#{anchor}" if anchor else "")}
