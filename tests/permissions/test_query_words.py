"""Whatever stands in the query of an URL, and whichever part of a page it names, the answer is no error of ours.

The plain answer says nothing that only we know (test_words.py). Which words a page reads is not written down: it is
noted while the page is asked. Those of the API stand in its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.http import QueryDict
from django.template.loader import get_template

from apps.api.v1 import views
from apps.api.v1.schemas.operations.core import OPERATIONS
from apps.web.kit import pages
from tests.permissions.asking import client_for, path_of, undone
from tests.permissions.callers import ADMIN
from tests.permissions.env import Env
from tests.permissions.rows import Row
from tests.permissions.table import TABLE
from tests.permissions.test_words import put_contact_errors, unsaid_in

pytestmark = pytest.mark.django_db
NUL = "\0"  # PostgreSQL takes it in no text
# Also digits that are no numbers, numbers that fit in no column, half a character, and what steers terminals.
ODD = ("a\0b", "\u00b2", "9" * 30, "-1", "nan", "1e999", "\ud800", "\x1b[2J", "9" * 5000, "\u202e", "%", "../..")
PART = "partial"
READS = {row.url: row for row in TABLE if row.method == "GET"}
KNOWN: dict[str, Known] = {}
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


def asked(env: Env, row: Row, query: dict[str, str], read: set[str] | None = None) -> Any:
    """The answer to an operator; the words that were looked for are noted in `read`."""
    path, words = path_of(env, row), urlencode(query, errors="surrogatepass")
    with undone(), noting(set() if read is None else read):
        return client_for(env, row, ADMIN).get(f"{path}?{words}")


@dataclass(frozen=True, slots=True)
class Known:
    """What asking an URL tells about it: the words that it reads, what it says to odd ones, and its template.

    `unsaid` is what stands in its plain answer and must not.
    """

    words: set[str]
    odd: dict[str, int]
    unsaid: list[str]
    template: str = ""


def known_of(env: Env, row: Row) -> Known:
    """Asked once in each process."""
    if row.url not in KNOWN:
        with undone():
            put_contact_errors(env)
            KNOWN[row.url] = _known_api(env, row) if row.is_api else _known_page(env, row)
    return KNOWN[row.url]


def _known_api(env: Env, row: Row) -> Known:
    names = OPERATIONS[row.url.removeprefix("api:"), "GET"].query
    words = {name.partition("-word")[0] for name in names}
    odd = codes_of(env, row, [oddly(row, words)] if words else [])
    return Known(words, odd, unsaid_in(asked(env, row, dict(row.query))))


def _known_page(env: Env, row: Row) -> Known:
    words = set(row.query)
    whole = asked(env, row, dict(row.query), words)
    templates = whole.templates if whole.status_code == 200 else []
    odd = codes_of(env, row, [oddly(row, words)], words)  # a word may be looked for only where another one is given
    return Known(words, odd, unsaid_in(whole), str(templates[0].name) if templates else "")


def oddly(row: Row, words: set[str]) -> dict[str, str]:
    """Something odd in each of the words."""
    return {word: ODD[(at + len(row.url)) % len(ODD)] for at, word in enumerate(sorted(words))}


def codes_of(env: Env, row: Row, queries: Iterable[dict[str, str]], read: set[str] | None = None) -> dict[str, int]:
    """The answer to each query."""
    return {urlencode(query, errors="surrogatepass"): asked(env, row, query, read).status_code for query in queries}


def nul_in_words(env: Env, row: Row, words: set[str]) -> dict[str, int]:
    """The answers to NUL in each of the words, beside what the row asks anyway.

    A page that answers as usual with NUL in all of them is asked once more only about those that it did not look for.
    """
    codes: dict[str, int] = {}
    if len(words) > 1 and not row.is_api:
        read: set[str] = set()
        codes = codes_of(env, row, [{**row.query, **dict.fromkeys(words, NUL)}], read)
        words = words - read if 200 in codes.values() else words
    return codes | codes_of(env, row, [{**row.query, word: NUL} for word in sorted(words)])


def failed(codes: Mapping[str, int]) -> list[str]:
    """The queries that end in an error of ours."""
    return [query for query, code in codes.items() if code >= 500]


@pytest.mark.parametrize("url", READS)
def test_an_answer_says_nothing_that_only_we_know_and_breaks_by_no_odd_word_of_a_query(env: Env, url: str) -> None:
    known = known_of(env, READS[url])
    assert (known.unsaid, failed(known.odd)) == ([], [])


# Most pages read their words by a few helpers: a third of them in `make test`, each in `make test-all`.
@pytest.mark.parametrize(
    "url", [pytest.param(url, marks=pytest.mark.exhaustive if at % 3 else ()) for at, url in enumerate(READS)]
)
def test_no_answer_breaks_by_nul_or_by_a_part(env: Env, url: str) -> None:
    row, known = READS[url], known_of(env, READS[url])
    parts = [{**row.query, PART: part} for part in parts_of(known.template)]
    # SQLite takes NUL like any letter; a part of that name has no page (see below).
    words = known.words - {PART} if connection.vendor == "postgresql" else set()
    assert failed(nul_in_words(env, row, words)) + failed(codes_of(env, row, parts)) == []


def unguarded(request: Any, filters: Mapping[str, str], rows: Any) -> Any:
    """A filter that hands whatever stands in the query to the database."""
    given = request.query_params
    return rows.filter(**{field: given[name] for name, field in filters.items() if name in given})


def test_a_word_that_reaches_the_database_as_it_is_is_found(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "narrowed", unguarded)
    found = nul_in_words(env, READS["api:pools-list"], {"name"})
    assert (found["name=%00"] >= 500) == (connection.vendor == "postgresql")


def test_the_words_of_pages_are_found(env: Env) -> None:
    assert known_of(env, READS["web:rollouts"]).words == {"fleet", "before", "partial"}
    assert known_of(env, READS["web:sizing"]).words >= {"pool", "rate", "margin", "cost", "n_minus_1"}
    assert known_of(env, READS["web:route-new"]).words >= {"hostname", "path"}
    assert known_of(env, READS["api:sizing"]).words == {"pool", "rate", "n_minus_1", "cost_per_server"}


# One place answers for all of them: one page in `make test`, each in `make test-all`.
@pytest.mark.parametrize(
    "url", [pytest.param(url, marks=pytest.mark.exhaustive if url != "web:routes" else ()) for url in PAGES]
)
def test_a_page_does_not_know_any_other_part(env: Env, url: str) -> None:
    row = READS[url]
    if PART in known_of(env, row).words:
        assert asked(env, row, {**row.query, PART: NUL}).status_code == 404


def test_a_page_that_renders_whatever_part_is_named_is_found(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_part_of", lambda template, partial: f"{template}#{partial}")
    assert asked(env, READS["web:routes"], {"partial": "nonsense"}).status_code == 500


def parts_of(name: str) -> list[str]:
    """The parts that a template defines."""
    template: Any = get_template(name) if name else None
    return sorted(template.template.extra_data.get("partials", {})) if name else []


def test_the_parts_of_a_page_are_found() -> None:
    assert "rows" in parts_of("pages/routes/list.html")
