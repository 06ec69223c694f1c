"""Lists that are longer than a page are sorted on the server, and say which filters narrow them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.definitions.models import Pool, Route, RoutePool
from apps.web.finding import sorting
from apps.web.kit.worst_first import PER_PAGE
from tests.breadth import first_of
from tests.fixture_cache import CachedFixture
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
NAMES = [f"more-{at * 37 % 130:03}" for at in range(130)]


def add_many() -> None:
    """More pools, hostnames and routes than fit on a page, made in no order."""
    pool, route = Pool.objects.get(name="shop"), Route.objects.get(name="checkout")
    owner = pool.account
    balances = ("roundrobin", "leastconn")
    Pool.objects.bulk_create(Pool(account=owner, name=each, balance=balances[at % 2]) for at, each in enumerate(NAMES))
    Hostname.objects.bulk_create(Hostname(account=owner, name=f"{each}.example") for each in NAMES)
    hosts = dict(Hostname.objects.filter(name__startswith="more-").values_list("name", "pk"))
    Route.objects.bulk_create(
        Route(
            account=owner,
            name=each,
            load_balancer=route.load_balancer,
            hostname_id=hosts[f"{each}.example"],
            path="/",
        )
        for each in NAMES
    )
    RoutePool.objects.bulk_create(
        RoutePool(route=each, pool=pool) for each in Route.objects.filter(name__startswith="more-")
    )


_MANY = CachedFixture(add_many)


@pytest.fixture
def many(tutorial_env: Actor) -> Actor:
    """The operator of an environment with all of them."""
    _MANY.put()
    return tutorial_env


def shown(context: Any, path: str) -> list[Any]:
    """The rows of a page: pools, hostnames or routes."""
    rows = context["rows"]
    return [row[0] if isinstance(row, tuple) else row["pool"] if path == "/pools" else row.route for row in rows]


def walked(actor: Actor, path: str, sort: str) -> list[Any]:
    """All rows of a list, page by page."""
    client, after, found = client_of(actor), "", []
    for _ in range(10):
        context: Any = client.get(path, {"sort": sort, "after": after}).context
        found += shown(context, path)
        after = context["next_after"]
        if not after:
            return found
    raise AssertionError("there are too many pages")


@pytest.mark.parametrize(
    ("path", "head", "key"),
    first_of(
        2,
        [
            ("/pools", "Balance", lambda row: (row.balance, row.name, row.pk)),
            ("/routes", "Route", lambda row: (row.hostname.name, row.path, row.pk)),
            ("/pools", "Pool", lambda row: (row.name, row.account.name, row.pk)),
            ("/hostnames", "Hostname", lambda row: (row.name, row.pk)),
            ("/routes", "Account", lambda row: (row.account.name, row.name, row.pk)),
        ],
    ),
)
def test_every_row_stands_once_in_the_order_that_was_chosen_over_all_pages(
    many: Actor, path: str, head: str, key: Any
) -> None:
    up = [key(row) for row in walked(many, path, head)]
    assert len(up) > 2 * PER_PAGE
    assert up == sorted(set(up))
    assert [key(row) for row in walked(many, path, f"-{head}")] == up[::-1]


def test_the_head_of_a_long_table_sorts_by_a_link_and_says_so(many: Actor) -> None:
    client = client_of(many)
    page = client.get("/pools").content.decode()
    assert '<a class="sort" href="?sort=Pool">Pool</a>' in page
    assert '<th scope="col" class="num">Servers up</th>' in page  # what is measured has no order in the database
    page = client.get("/pools?sort=Pool&q=more").content.decode()
    assert 'aria-sort="ascending"' in page
    assert 'href="?q=more&amp;sort=-Pool"' in page
    assert '<input type="hidden" name="sort" value="Pool">' in page
    page = client.get("/pools?sort=-Pool&q=").content.decode()
    assert '<a class="sort" href="/pools">Pool</a>' in page  # as it was, without empty words


def test_a_table_that_fits_is_sorted_in_the_page(tutorial_env: Actor) -> None:
    assert 'class="sort"' not in client_of(tutorial_env).get("/pools").content.decode()


@pytest.mark.parametrize(
    "word", first_of(2, ["account__name", "a\0b", "Servers up", "--Pool", "pk", "\u202e", "9" * 5000, ""])
)
def test_a_word_that_is_no_head_sorts_nothing(many: Actor, word: str) -> None:
    first = shown(client_of(many).get("/pools").context, "/pools")
    answer = client_of(many).get("/pools", {"sort": word})
    assert answer.status_code == 200
    assert shown(answer.context, "/pools") == first


def cursor(*values: Any) -> str:
    """A text that a list could have said."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "after",
    first_of(
        4,
        [
            "x",
            cursor("more-001", "acme", 2**63),
            cursor("a\0b", "acme", 1),
            cursor({"$gt": ""}, "acme", 1),
            *("a\0b", "\u00b2", "%", "9" * 5000, "bnVsbA", "W1tbW1tb" * 400),
            cursor("more-001", "acme"),
            cursor("more-001", "acme", -1),
            cursor("more-001", "acme", True),
            cursor("\ud800", "acme", 1),
        ],
    ),
)
def test_a_cursor_that_is_none_means_the_first_page(many: Actor, after: str) -> None:
    client = client_of(many)
    first = shown(client.get("/pools?sort=Pool").context, "/pools")
    answer = client.get("/pools", {"sort": "Pool", "after": after})
    assert answer.status_code == 200
    assert shown(answer.context, "/pools") == first


def test_another_account_walks_through_its_own_alone(many: Actor, globex: Actor) -> None:
    assert {row.account_id for row in walked(globex, "/routes", "Route")} == {globex.account.pk}
    assert {row.name for row in walked(globex, "/pools", "-Pool")} == {"api"}


def test_a_later_page_costs_what_the_first_costs(many: Actor) -> None:
    client = client_of(many)
    client.get("/hostnames")  # a first request reads what others keep
    asked, after = [], ""
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            context: Any = client.get("/hostnames", {"sort": "Hostname", "after": after}).context
        after = context["next_after"] or ""
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_each_filter_is_a_chip_that_is_removed_by_itself(many: Actor) -> None:
    page = client_of(many).get("/routes?q=more&action=pools&sort=Route&account=&cursor=x").content.decode()
    for words in ("Search: more", "Action: Pools"):
        assert f'aria-label="Remove the filter {words}"' in page
    assert 'href="?action=pools&amp;sort=Route"' in page
    assert 'href="?q=more&amp;sort=Route"' in page
    assert "Remove the filter Account" not in page
    assert "Active filters" not in client_of(many).get("/routes?sort=Route").content.decode()
    assert "Status: waiting for verification" in client_of(many).get("/hostnames?state=waiting").content.decode()
    page = client_of(many).get("/pools", {"q": "<script>"}).content.decode()
    assert "<script>:" not in page
    assert "Search: &lt;script&gt;" in page


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/audit?kind=Pool&before=9&actor=", ["Kind: Pool"]),
        ("/schedules?state=paused&target=capacity_test", ["Status: Paused", "Action: Capacity test"]),
        ("/schedules/calendar?zone=Europe/Berlin&view=month", ["Time zone: Europe/Berlin"]),
        ("/requests?account=*&last=24h&q=x&before=", ["Filter: x", "Account: All accounts", "Last: Day"]),
        ("/requests?last=1h", []),
        ("/requests/patterns?last=7d", ["Last: 7 days"]),
        ("/hostnames?state=waiting", ["Status: waiting for verification"]),
    ],
)
def test_a_folded_form_counts_what_its_chips_say(many: Actor, path: str, words: list[str]) -> None:
    page = client_of(many).get(path).content.decode()
    assert f"<summary>Filters{f' ({len(words)})' if words else ''}</summary>" in page
    assert page.count("Remove the filter") == len(words)
    assert all(f'aria-label="Remove the filter {each}"' in page for each in words)


def test_a_chip_says_nothing_of_other_words() -> None:
    said = sorting.chips({"q": " ", "state": "waiting", "sort": "Pool"}, {"q": "Search", "state": "Status"})
    assert said == [sorting.Chip("state", "Status", "waiting")]
