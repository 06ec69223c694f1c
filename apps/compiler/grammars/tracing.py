"""Of how many requests spans are wanted."""

from __future__ import annotations

import math
from typing import cast

from apps.compiler.grammar import GrammarError


def percentage(value: object) -> float:
    """A share in per cent, 0 to 100."""
    if type(value) not in (int, float) or not math.isfinite(cast("float", value)):
        raise GrammarError("not_number", "Write this value as a number, without quotes.")
    if not 0 <= cast("float", value) <= 100:
        raise GrammarError("out_of_range", "Use a number from 0 to 100.")
    return float(cast("float", value))
