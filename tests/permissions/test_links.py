"""No page leads somebody to a page that they do not get: every link of every page of the table is followed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

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


def words_of(link: str) -> tuple[str, ...]:
    """Where a link leads, with the words of its query but not what they say."""
    parts = urlsplit(link)
    return parts.path, *sorted(parse_qs(parts.query, keep_blank_values=True))


@dataclass
class Reader:
    """Somebody who follows links; what an address answered is remembered."""

    client: Client
    codes: dict[str, int] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)

    def read(self, path: str) -> str:
        """The page, empty for one that they do not get."""
        if path not in self.pages:
            with undone():
                answer = heard(self.client.get(path))
            self.codes[path] = answer.code
            self.pages[path] = answer.body.decode("utf-8", "replace") if answer.code == 200 else ""
        return self.pages[path]

    def dead(self, pages: list[str]) -> Iterator[tuple[str, str, int]]:
        """Pages with links that are not answered well."""
        for page in pages:
            links = sorted({html.unescape(each) for each in LINK.findall(self.read(page))})
            # Where only what a filter looks for differs, one link stands for all.
            for link in {words_of(link): link for link in links if not link.startswith(APART)}.values():
                self.read(link)
                if self.codes[link] >= 400:
                    yield page, link, self.codes[link]


@pytest.fixture(scope="module")
def readers(env: Env) -> dict[Caller, Reader]:
    """Everybody with a session."""
    return {Caller(*who): Reader(client) for who, client in env.clients.items()}


def pages_of(env: Env) -> list[str]:
    """Every page of the table."""
    return sorted({path_of(env, row) for row in TABLE if row.method == "GET" and row.url.startswith("web:")})


@pytest.mark.slow(reason="reads every page and follows its links")
@pytest.mark.parametrize(
    "caller", [OWNER, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (ADMIN, *VIEWERS))], ids=str
)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_link_leads_somewhere(env: Env, readers: dict[Caller, Reader], part: int, caller: Caller) -> None:
    pages = pages_of(env)[part::PARTS]
    assert len(pages) > 20
    assert list(readers[caller].dead(pages)) == []


@pytest.mark.exhaustive
@pytest.mark.slow(reason="the world of all kinds is filled for it when it runs first on its worker")
def test_control_a_link_to_what_is_not_there_is_found(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Entry.objects.filter(account=env.accounts["own"], object_kind="Route").latest("id")
    page, client = reverse("web:audit-entry", args=[told.pk]), env.clients["own", "admin"]
    assert list(Reader(client).dead([page])) == []
    gone = reverse("web:route", args=[999_999])
    monkeypatch.setattr(audit, "pages_of_objects", lambda _actor, rows: {row.pk: gone for row in rows})
    assert list(Reader(client).dead([page])) == [(page, gone, 404)]
