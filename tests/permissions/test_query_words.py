"""Whatever stands in the query of an URL, and whichever part of a page it names, the answer is no error of ours.

Which words a page reads is not written down: it is noted while the page is asked. Those of the API stand in its table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.http import QueryDict
from django.template.loader import get_template
from django.urls import reverse

from apps.api.v1 import views
from apps.api.v1.schemas.operations import OPERATIONS
from apps.api.v1.views import Noun
from apps.web import pages
from tests.permissions.asking import client_for, filled, undone
from tests.permissions.callers import Caller
from tests.permissions.rows import Row
from tests.permissions.table import TABLE
from tests.permissions.world import World

pytestmark = pytest.mark.django_db
NUL = "\0"  # PostgreSQL takes it in no text
# Also digits that are no numbers, numbers that fit in no column, half a character, and what steers terminals.
ODD = ("a\0b", "\u00b2", "9" * 30, "-1", "nan", "1e999", "\ud800", "\x1b[2J", "9" * 5000, "\u202e", "%", "../..")
OPERATOR = Caller("operators", "admin")
READS = {row.url: row for row in TABLE if row.method == "GET"}
KNOWN: dict[str, set[str]] = {}  # the words of the pages that were asked
PAGES = [url for url in READS if url.startswith("web:")]


class Asked(QueryDict):
    """The words of a query, which note each word that somebody looks for."""

    def __init__(self, *args: Any, noted: set[str] | None = None, **kwargs: Any) -> None:
        self.noted = set() if noted is None else noted
        super().__init__(*args, **kwargs)

    def get(self, key: Any, default: Any = None) -> Any:
        """As in the query."""
        self.noted.add(key)
        return super().get(key, default)

    def getlist(self, key: Any, default: Any = None) -> Any:
        """As in the query."""
        self.noted.add(key)
        return super().getlist(key, default)

    def __contains__(self, key: object) -> bool:
        self.noted.add(str(key))
        return super().__contains__(key)

    def dict(self) -> Any:
        """Itself: what would be looked for in the copy is noted as well."""
        return self


@contextmanager
def noting(words: set[str]) -> Iterator[None]:
    """Note the words of the query that are looked for meanwhile."""

    def query(request: WSGIRequest) -> Asked:
        return Asked(request.environ.get("QUERY_STRING", ""), encoding=request.encoding, noted=words)

    with pytest.MonkeyPatch.context() as patch:
        noted = cached_property(query)
        noted.__set_name__(WSGIRequest, "GET")
        patch.setattr(WSGIRequest, "GET", noted)
        yield


def asked(world: World, row: Row, query: dict[str, str]) -> Any:
    """The answer to an operator."""
    path = row.at or reverse(row.url, kwargs=filled(world, row.path))
    words = urlencode(query, errors="surrogatepass")
    with undone():
        return client_for(world, row, OPERATOR).get(f"{path}?{words}")


def words_of(world: World, row: Row) -> set[str]:
    """Every word that the URL may read in its query."""
    if row.is_api:
        names = OPERATIONS[row.url.removeprefix("api:"), "GET"].query
        return {name.partition("-word")[0] for name in names}
    if row.url not in KNOWN:
        words = KNOWN[row.url] = set(row.query)
        for _ in range(2):  # a word may be looked for only where another one is given
            with noting(words):
                asked(world, row, {**dict.fromkeys(words, "1"), **row.query})
    return KNOWN[row.url]


def queries_of(row: Row, words: set[str]) -> list[dict[str, str]]:
    """NUL in each word beside what the row asks anyway, then something else that is odd in all of them."""
    shift = len(row.url)
    refused = words if connection.vendor == "postgresql" else ()  # SQLite takes NUL like any letter
    return [
        *({**row.query, word: NUL} for word in sorted(refused)),
        {word: ODD[(at + shift) % len(ODD)] for at, word in enumerate(sorted(words))},
    ]


def errors_of(world: World, row: Row) -> dict[str, int]:
    """The queries that end in an error of ours."""
    codes = {
        urlencode(query, errors="surrogatepass"): asked(world, row, query).status_code
        for query in queries_of(row, words_of(world, row))
    }
    return {query: code for query, code in codes.items() if code >= 500}


@pytest.mark.parametrize("url", READS)
def test_no_word_of_a_query_breaks_an_answer(world: World, url: str) -> None:
    assert errors_of(world, READS[url]) == {}


def unguarded(request: Any, noun: Noun, rows: Any) -> Any:
    """A filter that hands whatever stands in the query to the database."""
    given = request.query_params
    return rows.filter(**{field: given[name] for name, field in noun.filters.items() if name in given})


def test_a_word_that_reaches_the_database_as_it_is_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "narrowed", unguarded)
    found = errors_of(world, READS["api:pools-list"])
    assert ("name=%00" in found) == (connection.vendor == "postgresql")


def test_the_words_of_pages_are_found(world: World) -> None:
    assert words_of(world, READS["web:rollouts"]) == {"fleet", "before", "partial"}
    assert words_of(world, READS["web:sizing"]) >= {"pool", "rate", "margin", "cost", "lose"}
    assert words_of(world, READS["web:route-new"]) >= {"hostname", "path"}
    assert words_of(world, READS["api:sizing"]) == {"pool", "rate", "lose_a_region", "cost_per_server"}


@pytest.mark.any_database
@pytest.mark.parametrize("url", PAGES)
def test_a_page_answers_each_of_its_parts_and_does_not_know_any_other(world: World, url: str) -> None:
    row = READS[url]
    whole = asked(world, row, dict(row.query))
    if whole.status_code != 200 or not whole.templates:
        return
    name = whole.templates[0].name
    for part in parts_of(name):
        assert asked(world, row, {**row.query, "partial": part}).status_code < 500, f"{name}#{part}"
    if "partial" in words_of(world, row):
        assert asked(world, row, {**row.query, "partial": "nonsense"}).status_code == 404


def test_a_page_that_renders_whatever_part_is_named_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_part_of", lambda template, partial: f"{template}#{partial}")
    assert asked(world, READS["web:routes"], {"partial": "nonsense"}).status_code == 500


def parts_of(name: str) -> list[str]:
    """The parts that a template defines."""
    template: Any = get_template(name)
    return sorted(template.template.extra_data.get("partials", {}))


def test_the_parts_of_a_page_are_found() -> None:
    assert "rows" in parts_of("pages/routes/list.html")
