"""All tabs that hear of a sample cost one computation for each account and role, and show nobody what is others'."""

from __future__ import annotations

import html
import math
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership, User
from apps.core import caching, events
from apps.core.caching import made_once
from apps.definitions.models import Pool, Route
from apps.fleet.models import Region
from apps.observe.collect import lease
from apps.overflow import selectors
from apps.web.fleets import regions
from apps.web.kit import pages
from apps.web.load_balancers import views as load_balancers
from apps.web.overflow import views as overflow
from apps.web.overview import views as overview
from apps.web.overview import wall
from apps.web.pools import views as pools
from apps.web.routes import views as routes
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling
from tests.breadth import first_of
from tests.interfaces.people import client_of

PART = "/?partial=now"
# It has forms, and each form a token of one person.
OF_A_PERSON = re.compile(r"/pools/\d+\?partial=overflow")
FORGIVING = {"BACKEND": "apps.core.caching.ForgivingRedisCache", "OPTIONS": {"socket_connect_timeout": 0.5}}


@pytest.fixture
def env(db: None, live_redis: object, still_clock: None, monkeypatch: pytest.MonkeyPatch) -> Env:
    """us is at its limit; a slow machine has as much time as it needs for all tabs."""
    monkeypatch.setattr(pages, "PART_LASTS_S", 600)
    lease.share("a test")
    return make_spilling()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The account's name for each time that a flow was computed."""
    found: list[str] = []
    compute = selectors.flow_overall

    def noted(actor: object, *words: object) -> object:
        found.append(actor.account.name)  # type: ignore[attr-defined]  # an Actor
        return compute(actor, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(selectors, "flow_overall", noted)
    return found


def colleague_of(actor: Actor) -> Client:
    """A browser of somebody else with the same role in the same account."""
    user = User.objects.create(username="a colleague")
    Membership.objects.create(user=user, account=actor.account, role=Membership.Role.ADMIN)
    client = Client()
    client.force_login(user)
    return client


def test_all_tabs_of_an_account_cost_one_computation_for_each_sample(env: Env, made: list[str]) -> None:
    people = [client_of(env.operator), colleague_of(env.operator), client_of(env.acme)]
    for samples in (1, 2):
        events.publish("samples", at=samples)
        texts = [[person.get(PART).content for _ in range(2)] for person in people]
        assert all(len(set(each)) == 1 for each in texts)
        assert sorted(made) == samples * ["acme"] + samples * ["operator"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("shared", [True, False])
def test_control_without_turns_of_events_each_tab_computes(
    env: Env, made: list[str], shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shared:
        monkeypatch.setattr(events, "turns", lambda _: None)
    person = client_of(env.operator)
    for _ in range(3):
        assert person.get(PART).status_code == 200
    assert len(made) == (1 if shared else 3)


def live_parts(person: Client, page: str) -> list[str]:
    """The addresses of what the page asks for after events."""
    text = person.get(page).content.decode()
    found = re.findall(r'data-live[^>]* hx-get="([^"]+)"', text)
    return [html.unescape(f"{page}{each}" if each.startswith("?") else each) for each in found]


LIVE_PAGES = (
    "/", "/pools", "/pools/{pool}", "/regions/{region}", "/wall", "/overflow", "/routes", "/routes/{route}", "/regions",
    "/load-balancers",
)  # fmt: skip


@pytest.mark.parametrize("page", first_of(3, LIVE_PAGES))
def test_a_part_is_made_once_for_everybody_of_an_account_and_is_the_same_without_sharing(
    env: Env, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    region, pool, route = Region.objects.earliest("pk"), Pool.objects.earliest("pk"), Route.objects.earliest("pk")
    page = page.format(region=region.name, pool=pool.pk, route=route.pk)
    first, second = client_of(env.operator), colleague_of(env.operator)
    made: list[str] = []
    render = pages.show

    def noted(request: HttpRequest, template: str, *words: object) -> HttpResponse:
        made.append(request.get_full_path())
        return render(request, template, *words)  # type: ignore[arg-type]

    for module in (overview, wall, overflow, pools, routes, regions, load_balancers):
        monkeypatch.setattr(module, "show", noted)
    parts = [part for part in live_parts(first, page) if not OF_A_PERSON.match(part)]
    assert parts
    made.clear()
    shared = {part: (first.get(part).content, second.get(part).content) for part in parts}
    assert sorted(made) == sorted(parts)
    monkeypatch.setattr(events, "turns", lambda _: None)
    alone = {part: second.get(part).content for part in parts}
    assert shared == {part: (text, text) for part, text in alone.items()}


def test_what_is_refused_and_what_names_an_address_is_answered_to_each_tab_by_itself(env: Env) -> None:
    person, path = client_of(env.operator), "/routes?partial=rows&action=nothing"
    assert [person.get(path).status_code for _ in range(2)] == [422, 422]
    seen = [person.get("/overflow?partial=seen") for _ in range(2)]
    assert all(each["HX-Replace-Url"].startswith("/overflow") for each in seen)


@pytest.mark.parametrize(("slow_s", "times"), [(1e9, 2), (0.0, 1)])
def test_a_part_that_takes_long_rests_for_a_multiple_of_that(
    env: Env, made: list[str], slow_s: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SLOW_S", slow_s)
    monkeypatch.setattr(pages, "RESTS", 1e9)
    person = client_of(env.operator)
    for samples in range(2):
        events.publish("samples", at=samples)
        assert person.get(PART).status_code == 200
    assert len(made) == times


@pytest.mark.parametrize(("busy", "times"), [(0.4, 2), (1.0, 1)])
def test_a_process_that_is_busy_with_parts_answers_with_what_it_has_and_says_how_old_that_is(
    env: Env, made: list[str], busy: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_making", lambda *_: busy)
    monkeypatch.setattr(pages, "HELD_S", 1e9)
    person = client_of(env.operator)
    assert person.get(PART).get("Age") is None
    events.publish("samples", at=1)
    answer = person.get(PART)
    assert answer.get("Age") == (None if times == 2 else "0")
    assert len(made) == times


def test_what_a_process_does_fades(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    making = pages._Making()
    assert making(5.0) == making() == 5.0 / pages.FADES_S
    clock[0] += pages.FADES_S
    assert making() == pytest.approx(5.0 / pages.FADES_S / math.e)


def test_who_asks_while_a_part_is_made_has_the_one_before_and_waits_for_nothing(
    env: Env, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    person, other = client_of(env.operator), colleague_of(env.operator)
    before, meanwhile = person.get(PART).content, []
    compute = selectors.flow_overall

    def asked_meanwhile(actor: Actor, *words: Any) -> Any:
        meanwhile.append(other.get(PART).content)
        return compute(actor, *words)

    monkeypatch.setattr(selectors, "flow_overall", asked_meanwhile)
    events.publish("samples", at=1)
    person.get(PART)
    assert meanwhile == [before]


def test_a_token_of_a_form_is_nobody_elses(env: Env, rf: RequestFactory) -> None:
    view = pages.shared_parts("samples")(lambda request: HttpResponse(get_token(request)))

    def asked() -> HttpResponse:
        request: Any = rf.get("/?partial=form")
        request.actor = env.operator
        return view(request)

    assert asked().content != asked().content


def test_each_account_sees_its_own(env: Env) -> None:
    parts = {
        actor.account.name: client_of(actor).get(PART).content.decode()
        for actor in (env.operator, env.acme, env.globex)
    }
    assert "globex-web" in parts["operator"]
    assert "globex-web" not in parts["acme"]
    assert "acme-web" not in parts["globex"]


def test_a_part_is_asked_anew_when_something_moved_and_whole_pages_always_are(env: Env, made: list[str]) -> None:
    person = client_of(env.operator)
    person.get(PART)
    events.publish("zones", zone=1)  # nothing of it is on this page
    person.get(PART)
    assert len(made) == 1
    events.publish("rollouts", rollout=1)
    person.get(PART)
    assert len(made) == 2
    person.get("/")
    assert len(made) == 3


def test_who_may_no_longer_look_gets_nothing_that_was_made_for_others(env: Env) -> None:
    person = client_of(env.acme)
    assert person.get(PART).status_code == 200
    env.acme.account.suspended_at = env.acme.account.created_at
    env.acme.account.save()
    assert person.get(PART).status_code == 403
    person.logout()
    assert person.get(PART).status_code == 302


@pytest.fixture
def shared_cache(live_redis: str, settings: Settings) -> None:
    """As in production, where processes share it."""
    settings.CACHES = settings.CACHES | {"default": FORGIVING | {"LOCATION": live_redis}}


def test_who_asks_while_it_is_made_waits_for_it(shared_cache: None) -> None:
    made, others = [], threading.Event()

    def make() -> bytes:
        made.append(1)
        others.wait(0.2)
        return b"text"

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(lambda _: made_once("part", make, 60), range(20))) == [b"text"] * 20
    assert len(made) == 1


def test_when_its_maker_dies_or_fails_somebody_else_makes_it(
    shared_cache: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "MAKING_S", 0.1)
    cache.add("part:making", True, timeout=60)
    assert made_once("part", lambda: b"text", 60) == b"text"
    with pytest.raises(ZeroDivisionError):
        made_once("another", lambda: bytes(1 // 0), 60)
    assert made_once("another", lambda: b"text", 60) == b"text"


def test_without_redis_each_makes_its_own(settings: Settings) -> None:
    settings.CACHES = settings.CACHES | {"default": FORGIVING | {"LOCATION": "redis://127.0.0.1:1/0"}}
    texts = iter((b"one", b"two"))
    assert [made_once("part", lambda: next(texts), 60) for _ in range(2)] == [b"one", b"two"]


def test_a_part_has_no_blanks_around_it_which_each_swap_would_leave_in_the_page(env: Env) -> None:
    part = client_of(env.operator).get("/wall?partial=now").content
    assert part.startswith(b"<div")
    assert part.endswith(b"</div>")
