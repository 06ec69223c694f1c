"""Fixtures of every test that touches the database: the operator, two customers, the tutorial's environment."""

from __future__ import annotations

import copy
import functools
import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import hypothesis
import pytest
import yaml
from django.db import connections
from django.template import Context, Template
from django.test.signals import template_rendered
from django.test.utils import override_settings
from django.utils.safestring import SafeString
from hypothesis.internal.conjecture import providers
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from tests import emptying
from tests.fixture_cache import CachedFixture
from tests.servers import redis

# No example of a property is judged by how long a busy machine takes for it.
hypothesis.settings.register_profile("many", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
# The same few each time: what fails for a change is the change's; new ones are looked for by the whole suite.
hypothesis.settings.register_profile(
    "few", hypothesis.settings.get_profile("many"), max_examples=20, derandomize=True, database=None
)
TUTORIAL = Path(__file__).resolve().parents[1] / "deploy" / "examples" / "tutorial.yaml"


# Folders of tests that start processes and wait for them, and fixtures that open Django's database.
BESIDE_PROCESSES = frozenset({"e2e", "conformance"})
DATABASE_FIXTURES = frozenset({"db", "transactional_db", "live_server"})
# A database that holds every migration: a path for SQLite, a name for PostgreSQL (tests/run_suite.py makes them).
TEMPLATE = os.environ.get("SPILLWAY_TEST_TEMPLATE", "")


def pytest_configure(config: pytest.Config) -> None:
    """Properties are asked of many examples unless what is exhaustive is left out."""
    gc.disable()  # what is read now stays: see pytest_collection_finish
    few = "not exhaustive" in config.option.markexpr
    hypothesis.settings.load_profile("few" if few else "many")
    if few:  # it mixes in constants of all our modules: other examples after any change, and a second for each worker
        providers._get_local_constants = lambda: providers._local_constants  # not public


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks that follow from where a test stands and from what it asks for."""
    if item.get_closest_marker("browser") or not BESIDE_PROCESSES.isdisjoint(item.path.parts):
        item.add_marker("processes")
    if item.get_closest_marker("django_db") or not DATABASE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker("database")


def _seconds(item: pytest.Item) -> float:
    """About how long its file takes, where that is long."""
    mark = item.get_closest_marker("long")
    return 0.0 if mark is None else float(*mark.args or (20,))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, else the whole run waits for it in the end; all else stays in random order.

    Chromium keeps processors busy while most tests beside processes wait: its files are spread over nearly all of a
    run, else they leave little to each other and then processors to nobody.
    """
    items.sort(key=_seconds, reverse=True)
    files = list(dict.fromkeys(item.path for item in items))
    browsers = dict.fromkeys(item.path for item in items if item.get_closest_marker("browser"))
    rank = {path: float(at) for at, path in enumerate(path for path in files if path not in browsers)}
    step = 0.9 * len(rank) / max(1, len(browsers))
    rank |= {path: at * step - 0.5 for at, path in enumerate(browsers)}
    items.sort(key=lambda item: rank[item.path])


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it for garbage again and again takes a twentieth of a run."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_runtest_setup() -> None:
    """The test before wrote, and nobody waits for the lock of this worker's SQLite: the next one begins at once."""
    from apps.core.concurrency.politeness import be_polite

    connections["default"].execute_wrappers.clear()
    be_polite(connections["default"])


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A database of this worker's own, copied from the template where there is one.

    SQLite in a file: in memory, threads would share one connection and prove nothing about races.
    """
    settings = connections["default"].settings_dict
    if settings["ENGINE"] == "django.db.backends.sqlite3":
        settings["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
        if TEMPLATE:
            shutil.copyfile(TEMPLATE, settings["TEST"]["NAME"])
    else:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        settings["TEST"] |= {"NAME": f"test_spillway_{worker}_{os.getpid()}", "TEMPLATE": TEMPLATE or None}


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Whether a file that is there already is the database: SQLite's copy of the template is."""
    return bool(TEMPLATE) and connections["default"].vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Tables are emptied between tests by DELETE, which the audit log refuses on SQLite; a test puts it back."""
    emptying.install()
    connection = connections["default"]
    if connection.vendor == "sqlite":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER audit_entry_no_delete")


@pytest.fixture(scope="session", autouse=True)
def _pages_alone_are_told(django_test_environment: None) -> None:
    """A client hears of each page that is rendered; Django also copies the context of everything that it includes."""

    def rendered(page: Template, context: Context) -> SafeString:
        if context.template is page:
            template_rendered.send(sender=page, template=page, context=context)
        return page.nodelist.render(context)

    Template._render = rendered  # type: ignore[attr-defined]  # not public


@pytest.fixture(scope="session", autouse=True)
def _light() -> Iterator[None]:
    """Tests that start no Redis remember in memory; limits of rates and hashing are turned down.

    Those that ask about one of these turn it on. Each new client would read all static files before its first request.
    """
    with override_settings(
        API_RATE_LIMITS=False,
        PASSWORD_HASHERS=["tests.hashing.QuickScrypt"],
        WHITENOISE_AUTOREFRESH=True,
        CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    ):
        yield


@pytest.fixture(autouse=True)
def _from_nothing(settings: Settings) -> None:
    """What a test remembers and stores is its own."""
    from django.core.cache import cache

    from apps.core.secrets import keys

    settings.LOGS_URL = f"memory://{uuid4().hex}"
    cache.clear()
    keys.trust()  # else the first test of a process that writes makes more queries than the others


def actor_of(name: str, kind: str, role: str = Membership.Role.ADMIN) -> Actor:
    """An actor of the account with this name, made when it is not there."""
    account, _ = Account.objects.get_or_create(name=name, defaults={"title": name.capitalize(), "kind": kind})
    return Actor(f"somebody of {name}", account, role)


def apply_tutorial() -> None:
    """The tutorial's environment, applied by the operator."""
    from apps.definitions.services import apply_document

    for name in ("acme", "globex"):
        actor_of(name, Account.Kind.CUSTOMER)
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=copy.deepcopy(_tutorial_objects()))


_TUTORIAL = CachedFixture(apply_tutorial)


@pytest.fixture
def operator(db: None, request: pytest.FixtureRequest) -> Actor:
    """An admin of the operator account; before anything else, the tutorial's setup is put where a test wants it."""
    if "tutorial_env" in request.fixturenames:
        _TUTORIAL.put()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def acme(operator: Actor) -> Actor:
    """An admin of the customer acme."""
    return actor_of("acme", Account.Kind.CUSTOMER)


@pytest.fixture
def globex(operator: Actor) -> Actor:
    """An admin of the customer globex."""
    return actor_of("globex", Account.Kind.CUSTOMER)


@pytest.fixture
def tutorial_document() -> list[dict[str, Any]]:
    """The objects of the tutorial, as apply takes them; yours to change."""
    return copy.deepcopy(_tutorial_objects())


@functools.cache
def _tutorial_objects() -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = yaml.safe_load(TUTORIAL.read_text())["objects"]
    return objects


@pytest.fixture
def tutorial_env(operator: Actor) -> Actor:
    """The tutorial's environment as the operator applied it, who is returned."""
    return operator


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of this worker's own, on a free port; empty it yourself or use `live_redis`."""
    with redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time stands still: on a busy machine, what a test calls a moment ago must not grow old meanwhile."""
    from apps.core import clock

    instant = clock.now()
    monkeypatch.setattr(clock, "timezone", SimpleNamespace(now=lambda: instant))
    monkeypatch.setattr(clock, "_told", lambda: None)


@pytest.fixture
def live_redis(redis_url: str, settings: Settings) -> Iterator[str]:
    """An empty Redis that the apps use as theirs."""
    from apps.core import events
    from apps.observe.live import store as live

    settings.REDIS_URL = settings.CELERY_BROKER_URL = redis_url
    for client in (events._client, live.client):
        client.cache_clear()
    live.client().flushall()
    live.forgive()
    yield redis_url
    for client in (events._client, live.client):
        client.cache_clear()


@pytest.fixture(scope="session")
def _shared_chromium() -> Iterator[Any]:
    """Not started yet."""
    from tests.browser import SharedChromium

    shared = SharedChromium()
    yield shared
    shared.end()


@pytest.fixture
def chromium(_shared_chromium: Any) -> Iterator[Any]:
    """The one Chromium of this session."""
    with _shared_chromium.lent() as browser:
        yield browser
