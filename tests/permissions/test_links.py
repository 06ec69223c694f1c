"""No page leads somebody to a page that they do not get: every link of every page of the table is followed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.models import Entry
from apps.web.accounts import audit
from tests.permissions.asking import heard, path_of, undone
from tests.permissions.callers import ADMIN, OWNER, Caller
from tests.permissions.env import Env
from tests.permissions.table import TABLE

pytestmark = pytest.mark.django_db
PARTS = 4
LINK = re.compile(r"""<a\s[^>]*href="(/[^"#]*)""")
# Files, and what ends a session.
APART = ("/static/", "/docs/", "/sign-out")
VIEWERS = (Caller("own", "viewer"), Caller("operators", "viewer"))


def links_of(client: Client, path: str) -> set[str]:
    """Where a page leads, without its query of sorting and the like."""
    with undone():
        answer = heard(client.get(path))
    if answer.code != 200:
        return set()
    found = map(html.unescape, LINK.findall(answer.body.decode("utf-8", "replace")))
    return {each for each in found if not each.startswith(APART)}


def dead(client: Client, pages: list[str]) -> Iterator[tuple[str, str, int]]:
    """Pages with links that are not answered well."""
    known: dict[str, int] = {}
    for page in pages:
        for link in sorted(links_of(client, page)):
            if link not in known:
                with undone():
                    known[link] = heard(client.get(link)).code
            if known[link] >= 400:
                yield page, link, known[link]


def pages_of(env: Env) -> list[str]:
    """Every page of the table."""
    return sorted({path_of(env, row) for row in TABLE if row.method == "GET" and row.url.startswith("web:")})


@pytest.mark.slow(reason="reads every page and follows its links")
@pytest.mark.parametrize(
    "caller", [OWNER, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (ADMIN, *VIEWERS))], ids=str
)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_link_leads_somewhere(env: Env, part: int, caller: Caller) -> None:
    pages = pages_of(env)[part::PARTS]
    assert len(pages) > 20
    assert list(dead(env.clients[caller.account, caller.role], pages)) == []


def test_control_a_link_to_what_is_not_there_is_found(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Entry.objects.filter(account=env.accounts["own"], object_kind="Route").latest("id")
    page, client = reverse("web:audit-entry", args=[told.pk]), env.clients["own", "admin"]
    assert list(dead(client, [page])) == []
    gone = reverse("web:route", args=[999_999])
    monkeypatch.setattr(audit, "pages_of_objects", lambda _actor, rows: {row.pk: gone for row in rows})
    assert list(dead(client, [page])) == [(page, gone, 404)]
