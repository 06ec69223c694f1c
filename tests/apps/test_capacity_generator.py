"""How much the generator says it can send bounds a run: refused, bounded, and never taken for what the target can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.api.v1.capacity.runs import run_shape
from apps.capacity import services
from apps.capacity.models import Run
from apps.capacity.run import running
from apps.drivers.load.contract import LoadError
from apps.drivers.load.memory import MemoryBackend, MemoryGenerator, forget_memory_backends, memory_backend
from tests.apps.capacity_env import Watched, a_test, put, stepwise
from tests.interfaces.people import client_of


@pytest.fixture
def editor(db: None, live_redis: str) -> Actor:
    """Acme's editor in an environment that can be loaded."""
    return put()


@pytest.fixture
def nodes(editor: Actor, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The nodes, pushed to and read."""
    return stepwise(monkeypatch)


@pytest.fixture
def backend(nodes: Watched) -> Iterator[MemoryBackend]:
    """A server that takes 20 requests/s, and a generator that makes 12."""
    yield memory_backend("127.0.0.1", 19101, servers=2, service_ms=100, generator_max=12.0)
    forget_memory_backends()


def ran(actor: Actor, **parts: Any) -> Run:
    """A run that was asked for and carried out."""
    run = services.request_run(actor=actor, test_id=a_test(actor, **parts).pk)
    running.carry_out(run.pk)
    run.refresh_from_db()
    return run


@pytest.mark.slow(reason="a whole search, second by second")
def test_a_search_that_comes_to_the_maximum_of_the_generator_says_so(editor: Actor, backend: MemoryBackend) -> None:
    run = ran(editor, load={"arrivals": "constant"})
    assert run.state == Run.State.DONE, run.message
    assert run.generator is not None
    assert run.generator["rate"] == 12.0
    assert run.result is not None
    assert (run.result["limited_by"], run.result["capacity"]) == ("generator", 12.0)
    assert run.result["high"] is None
    assert "offers no more than 12 requests/s here: the target may take more" in run.message
    assert "highest rate that the test allows" not in run.message
    assert not run.steps.filter(rate__gt=12.0).exists()
    assert run_shape(run)["generator"] == run.generator


@pytest.mark.parametrize(
    ("load", "refused"),
    [
        ({"kind": "constant", "rate": 13, "duration_s": 10}, "Lower load.rate"),
        ({"kind": "ramp", "rate": 2, "to_rate": 14, "step": 4, "duration_s": 5}, "Lower load.to_rate"),
        ({"kind": "constant", "rate": 12, "duration_s": 10}, ""),
    ],
)
def test_a_rate_above_the_maximum_is_refused_with_the_number_and_one_below_is_not(
    editor: Actor, backend: MemoryBackend, load: dict[str, Any], refused: str
) -> None:
    run = ran(editor, load=load | {"arrivals": "constant"})
    assert run.state == (Run.State.REFUSED if refused else Run.State.DONE), run.message
    assert ("can offer at most 12 here" in run.message, refused in run.message) == (bool(refused), True)
    assert (backend.received == 0) is bool(refused)


def test_a_generator_that_cannot_find_out_does_not_keep_a_run_back(
    editor: Actor, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(*_: object) -> None:
        raise LoadError("It could not.")

    monkeypatch.setattr(MemoryGenerator, "maximum", unknown)
    run = ran(editor, load={"kind": "constant", "rate": 5, "duration_s": 5, "arrivals": "constant"})
    assert (run.state, run.generator) == (Run.State.DONE, None)


def test_the_page_of_a_run_shows_the_maximum(editor: Actor, backend: MemoryBackend) -> None:
    run = ran(editor, load={"kind": "constant", "rate": 5, "duration_s": 5, "arrivals": "constant"})
    page = client_of(editor).get(f"/capacity-runs/{run.pk}").content.decode()
    assert "It offers up to 12 requests/s here (one process on 1 core)." in page
