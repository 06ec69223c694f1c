"""The last crumb of a page opens what else there is of its kind, and costs nothing until then."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.definitions.models import Pool
from apps.web.finding import siblings
from apps.web.finding.kinds import KINDS
from apps.web.templatetags import finding
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def menu(actor: Actor, path: str) -> str:
    """What the menu shows."""
    answer = client_of(actor).get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_a_crumb_names_no_other_object_and_asks_nothing_before_it_is_opened(tutorial_env: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    page = client_of(tutorial_env).get(f"/pools/{pool.pk}").content.decode()
    crumbs = page[page.index("Breadcrumbs") : page.index("</nav>", page.index("Breadcrumbs"))]
    assert "shop: show another pool" in crumbs
    assert "shop-next" not in crumbs
    with CaptureQueriesContext(connection) as queries:
        finding.siblings(pool)
    assert len(queries) == 0


def test_it_shows_the_others_with_their_owner_and_marks_the_one_that_is_open(tutorial_env: Actor) -> None:
    pool, other = Pool.objects.get(name="shop"), Pool.objects.get(name="shop-next")
    shown = menu(tutorial_env, f"/siblings/pool/{pool.pk}")
    assert f'<a href="/pools/{pool.pk}" aria-current="page">' in shown
    assert f'<a href="/pools/{other.pk}">' in shown
    assert "globex" in shown
    assert "search" not in shown  # three need none


def test_more_than_fit_are_searched_on_the_server(tutorial_env: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    Pool.objects.bulk_create(Pool(account=pool.account, name=f"more-{at:03}") for at in range(200))
    shown = menu(tutorial_env, f"/siblings/pool/{pool.pk}")
    assert shown.count("<li>") == siblings.SHOWN
    assert 'type="search"' in shown
    found = menu(tutorial_env, f"/siblings/pool/{pool.pk}?partial=list&q=more-199")
    assert found.count("<li>") == 1
    assert 'type="search"' not in found  # what one types in stays
    assert "No pool has this in its name." in menu(tutorial_env, f"/siblings/pool/{pool.pk}?q=nothing")


def test_another_account_sees_its_own_alone(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    pool = Pool.objects.get(name="shop")
    assert "globex" not in menu(acme, f"/siblings/pool/{pool.pk}")
    assert client_of(globex).get(f"/siblings/pool/{pool.pk}").status_code == 404
    assert client_of(acme).get("/siblings/nothing/1").status_code == 404


@pytest.mark.parametrize("odd", ["a\0b", "%", "\u202e", "9" * 5000, "\x1b[2J", "<script>"])
def test_an_odd_word_finds_nothing_and_breaks_nothing(tutorial_env: Actor, odd: str) -> None:
    pool = Pool.objects.get(name="shop")
    answer = client_of(tutorial_env).get(f"/siblings/pool/{pool.pk}", {"q": odd})
    assert answer.status_code == 200
    assert answer.content.decode().count("<li>") == 0


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.page])
def test_every_kind_with_a_page_answers(tutorial_env: Actor, kind: str) -> None:
    row = KINDS[kind].rows(tutorial_env).first()
    if row is not None:
        assert "<a href=" in menu(tutorial_env, f"/siblings/{kind}/{row.pk}")
