"""Tables of Markdown and the line with this machine's facts that stands above each."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.bench.__main__ import machine


def facts() -> str:
    """What the numbers below were measured on, with the load at this moment."""
    words = machine() | {"load": " ".join(f"{each:.1f}" for each in os.getloadavg())}
    return "  ".join(f"{name} {value}" for name, value in words.items())


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown, columns aligned for reading as plain text."""
    widths = [max(len(line[column]) for line in (heads, *rows)) for column in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows)])


def percent(share: float) -> str:
    """`0.0123` → `1.23 %`."""
    return f"{share * 100:.2f} %"
