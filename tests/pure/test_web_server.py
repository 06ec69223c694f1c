"""The web server loads everything before it listens, and its garbage collector leaves that alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from controlplane import web_server


@pytest.fixture
def collector() -> Iterator[None]:
    """The collector of this process, as it was before."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_what_was_loaded_is_not_looked_through_for_garbage(collector: None) -> None:
    web_server.when_ready(None)
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] == 10_000
    assert gc.isenabled()
