"""The rows of status pages and their incidents: what members do, and what anybody may read."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.alerts.models import Alert
from apps.core.clock import now
from apps.definitions.models import Pool, StatusPage
from apps.definitions.services import save_object
from apps.status.models import DeletedIncident, PoolDay
from apps.status.services import open_incident
from tests.permissions.alert_rows import ENDED
from tests.permissions.page_rows import (
    EDIT_BY_ROLE,
    EDIT_FAULTY,
    EDIT_FAULTY_BY_ROLE,
    LIST,
    NEW,
    NEW_FAULTY,
    READ_OWN,
    SENT_BY_ROLE,
    sent,
    shown,
)
from tests.permissions.rows import Open, Row, codes
from tests.permissions.sign_in_rows import for_anybody

OF_PAGE, OF_INCIDENT = {"pk": "$statuspage"}, {"pk": "$incident"}
SPEC: dict[str, Any] = {"title": "Payments of acme fail", "text": "We look into it.", "components": ["Shop"]}
CREATE = codes("403 422 422", "403 201 201", "403 422 422")
WRITTEN = codes("403 404 404", "403 201 201", "403 201 201")
GET = ("GET",)

OF_STATUS: tuple[Row, ...] = (
    Row("api:incidents-list", "GET", LIST, holds="all"),
    Row("api:incidents-list", "POST", CREATE, holds="statuspage", body={"page": "acme-status", "spec": SPEC}),
    Row("api:incidents-detail", "GET", READ_OWN, OF_INCIDENT, "incident"),
    Row("api:incidents-detail", "DELETE", ENDED, OF_INCIDENT, "incident"),
    Row("api:incidents-updates", "POST", WRITTEN, OF_INCIDENT, "incident", {"spec": {"text": "Found."}}),
    *shown("status-pages", LIST, "all"),
    *shown("status-page", READ_OWN, "statuspage", OF_PAGE),
    Row("web:status-page-new", "GET", NEW, holds="all"),
    sent("status-page-new", NEW_FAULTY, "all", form={"/name": ""}),
    Row("web:status-page-edit", "GET", EDIT_BY_ROLE, OF_PAGE, "statuspage"),
    sent("status-page-edit", EDIT_FAULTY_BY_ROLE, "statuspage", OF_PAGE, form={"/spec/title": "<"}),
    sent("status-page-delete", SENT_BY_ROLE, "statuspage", OF_PAGE, confirm="acme-status"),
    Row("web:incident-new", "GET", EDIT_BY_ROLE, OF_PAGE, "statuspage"),
    sent("incident-new", EDIT_FAULTY_BY_ROLE, "statuspage", OF_PAGE, form={"/spec/title": ""}),
    Row("web:incident", "GET", READ_OWN, OF_INCIDENT, "incident"),
    sent("incident", EDIT_FAULTY, "incident", OF_INCIDENT, form={"/spec/text": ""}),
    sent("incident-delete", SENT_BY_ROLE, "incident", OF_INCIDENT, confirm=SPEC["title"]),
    *for_anybody("status:own", 302, 302, GET),
    # One that is not public is not found by anybody, not even by those who may see it in the console.
    Row("status:page", "GET", Open(404, 404), {"name": "acme-status"}, by_viewers=True),
    Row(
        "status:page-without-slash",
        "GET",
        Open(200, 200),
        {"name": "globex-public"},
        by_viewers=True,
        odd={"suspended": 404},
    ),
    Row("status:feed", "GET", Open(404, 404), {"name": "acme-status"}, by_viewers=True),
)


def make_status_rows(account: Account, other: Account) -> None:
    """A page that is not public with an incident, and one of another account that is."""
    actor = Actor("somebody", account, "admin")
    spec = {"title": "Status of acme", "components": [{"name": "Shop", "routes": ["shop"]}]}
    page: StatusPage = save_object(actor=actor, kind="StatusPage", name="acme-status", spec=spec)
    open_incident(actor=actor, page_id=page.pk, spec=SPEC)
    public = {"title": "Status of globex", "public": True}
    save_object(actor=Actor("somebody", other, "admin"), kind="StatusPage", name="globex-public", spec=public)
    pool = Pool.objects.filter(account=account).earliest("pk")
    PoolDay.objects.create(pool=pool, day=now().date(), minutes=5, counted_until=now())
    DeletedIncident.objects.create(page=page, alert=Alert.objects.get(account=account))
