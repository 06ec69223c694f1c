"""Properties that few examples show in every run, always the same ones, and many others in the exhaustive run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

# Examples of a few, crowded places are larger than what hypothesis likes to draw.
LARGE = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(few: int, many: int) -> pytest.MarkDecorator:
    """Give the test its number of examples: few, or the many of the exhaustive run."""
    return pytest.mark.parametrize(
        ("count", "repeatable"),
        [pytest.param(few, True, id="few"), pytest.param(many, False, id="many", marks=pytest.mark.exhaustive)],
    )


def always(law: Callable[..., None], *drawn: SearchStrategy[Any], count: int, repeatable: bool) -> None:
    """Ask the law of so many examples; those that are repeatable are the same each time."""
    settings(max_examples=count, derandomize=repeatable, suppress_health_check=LARGE)(given(*drawn)(law))()
