"""The rows of saved searches, and one of the own account."""

from __future__ import annotations

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.logs.saved import save_search
from tests.permissions.alert_rows import CREATE, ENDED
from tests.permissions.page_rows import LIST, NEW, NEW_FAULTY, READ_OWN, SENT_BY_ROLE, sent, shown
from tests.permissions.rows import Row

OF_SEARCH = {"pk": "$savedsearch"}
SPEC = {"filter": "status>=500", "metric": {"measure": "count"}}

OF_SEARCHES: tuple[Row, ...] = (
    Row("api:saved-searches-list", "GET", LIST, holds="all"),
    Row("api:saved-searches-list", "POST", CREATE, body={"name": "failed", "spec": SPEC}),
    Row("api:saved-searches-detail", "GET", READ_OWN, OF_SEARCH, "savedsearch"),
    Row("api:saved-searches-detail", "DELETE", ENDED, OF_SEARCH, "savedsearch"),
    Row("api:saved-searches-history", "GET", READ_OWN, OF_SEARCH, "savedsearch"),
    *shown("saved-searches", LIST, "all"),
    Row("web:saved-search-new", "GET", NEW, holds="all"),
    sent("saved-search-new", NEW_FAULTY, "all", form={"/name": ""}),
    *shown("saved-search", READ_OWN, "savedsearch", OF_SEARCH),
    sent("saved-search-delete", SENT_BY_ROLE, "savedsearch", OF_SEARCH, confirm="errors"),
)


def make_searches(account: Account) -> None:
    """One that is measured."""
    save_search(actor=Actor("somebody", account, "admin"), name="errors", spec=SPEC)
