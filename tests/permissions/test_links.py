"""No page leads somebody to a page that they do not get: every link of every page of the table is followed."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve, reverse

from apps.audit.models import Entry
from apps.web.accounts import audit
from tests.breadth import first_of
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


def view_of(link: str) -> tuple[str, ...]:
    """The same of whichever object the page shows."""
    path, *words = words_of(link)
    try:
        return resolve(path).view_name, *words
    except Resolver404:
        return path, *words


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

    def dead(self, pages: list[str], alike: Callable[[str], object] = words_of) -> Iterator[tuple[str, str, int]]:
        """Pages with links that are not answered well; of links that are alike on a page one stands for all."""
        for page in pages:
            links = sorted({html.unescape(each) for each in LINK.findall(self.read(page))})
            for link in {alike(link): link for link in links if not link.startswith(APART)}.values():
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
    ("caller", "alike"),
    first_of(1, [(OWNER, view_of), *((each, words_of) for each in (OWNER, ADMIN, *VIEWERS))]),
    ids=lambda given: getattr(given, "__name__", str(given)),
)
@pytest.mark.parametrize("part", first_of(2, range(PARTS)))
def test_every_link_leads_somewhere(
    env: Env, readers: dict[Caller, Reader], part: int, caller: Caller, alike: Callable[[str], object]
) -> None:
    pages = pages_of(env)[part::PARTS]
    assert len(pages) > 20
    assert list(readers[caller].dead(pages, alike)) == []


@pytest.mark.exhaustive
@pytest.mark.slow(reason="the world of all kinds is filled for it when it runs first on its worker")
def test_control_a_link_to_what_is_not_there_is_found(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Entry.objects.filter(account=env.accounts["own"], object_kind="Route").latest("id")
    page, client = reverse("web:audit-entry", args=[told.pk]), env.clients["own", "admin"]
    assert list(Reader(client).dead([page])) == []
    gone = reverse("web:route", args=[999_999])
    monkeypatch.setattr(audit, "pages_of_objects", lambda _actor, rows: {row.pk: gone for row in rows})
    assert list(Reader(client).dead([page])) == [(page, gone, 404)]
