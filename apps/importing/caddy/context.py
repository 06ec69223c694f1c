"""What every reader of one file of Caddy shares: its values, their verdicts, names of ours, open questions."""

from __future__ import annotations

from dataclasses import dataclass

from apps.importing.context import Context
from apps.importing.results.made import Made
from apps.importing.values.fields import Fields
from apps.importing.values.parsing import Path
from apps.importing.verdicts import Ledger, Line

HTTP: Path = ("apps", "http")


@dataclass(slots=True)
class Caddy:
    """One import while it goes on."""

    fields: Fields
    context: Context
    made: Made

    @property
    def ledger(self) -> Ledger:
        """The verdicts."""
        return self.context.ledger

    @property
    def http_port(self) -> int:
        """The port that speaks http only."""
        return self._port("http_port", 80)

    @property
    def https_port(self) -> int:
        """The port that clients of https need not name."""
        return self._port("https_port", 443)

    def line(self, path: Path) -> Line:
        """The first line of a value; of one that is not there, that of what it would be part of."""
        first = next(iter(self.fields.below(path)), None)
        return first if first is not None else self.line(path[:-1])

    def _port(self, name: str, default: int) -> int:
        value = self.fields.at(*HTTP, name)
        return value if isinstance(value, int) else default
