"""The promise of every import: documents of ours, a verdict for each line, and what must be said before they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.importing.verdicts import LineReport


@dataclass(frozen=True, slots=True)
class Import:
    """Documents in an order in which they can be applied; a report of every line; open questions."""

    documents: tuple[dict[str, Any], ...]
    report: tuple[LineReport, ...]
    needs: tuple[str, ...] = ()
