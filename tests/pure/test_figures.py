"""Measured numbers in words: only nothing is 0 %, and only all of it 100 %."""

from __future__ import annotations

import pytest

from apps.web.kit.figures import share


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (0.0, "0 %"), (0.000_01, "<0.01 %"), (0.000_06, "0.01 %"), (0.0042, "0.42 %"), (0.042, "4.2 %"),
        (0.42, "42 %"), (0.994, "99 %"), (0.9995, "99.95 %"), (0.999_99, "99.99 %"), (0.1 + 0.2 + 0.7, "100 %"),
        (1.0, "100 %"), (1.5, "150 %"),
    ],
)  # fmt: skip
def test_a_share_is_told_in_per_cent(value: float | None, text: str) -> None:
    assert share(value) == text
