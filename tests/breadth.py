"""Cases of which `make test` asks the first few and `make test-all` all: first stand those that stand for others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def first_of(count: int, cases: Iterable[Any]) -> list[ParameterSet]:
    """Parameters for `parametrize`: all after the first `count` are exhaustive. A tuple holds several arguments."""
    each = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=() if at < count else pytest.mark.exhaustive) for at, case in enumerate(each)]
