"""What a replay asks, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class NotReplayable(Exception):
    """The old configuration cannot be run here; the reason says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a port of the old configuration."""

    port: int
    host: str
    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = "".join(f" {name}: {value}" for name, value in self.headers.items())
        return f":{self.port} {self.method} {self.host}{self.path}{said}"


@dataclass(frozen=True, slots=True)
class Opening:
    """A connection to a port of tcp: what its TLS asks for, and what is sent, inside of TLS where the port ends it."""

    port: int
    name: str = ""
    alpn: str = ""
    sent: bytes = b""
    is_tls: bool = False

    def __str__(self) -> str:
        tls = ["TLS", *([f"for {self.name}"] if self.name else []), *([f"with {self.alpn}"] if self.alpn else [])]
        first = self.sent.split()[:1]
        said = [f"begins {first[0]!r}"] if first else [] if self.is_tls else ["sends nothing"]
        return " ".join([f":{self.port}", *(tls if self.is_tls else []), *said])


Asked = Request | Opening


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets, and what the server saw: `pool` is the backend that answered, empty for none."""

    status: int
    pool: str = ""
    location: str = ""
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, str] = field(default_factory=dict)

    def differences(self, other: Answer) -> list[str]:
        """What is not equal, the old one first."""
        pairs: list[tuple[str, object, object]] = [
            ("status", self.status, other.status),
            ("pool", self.pool, other.pool),
            ("location", self.location, other.location),
            ("path of the server", self.path, other.path),
            *((f"response header {name}", self.headers.get(name), other.headers.get(name))
              for name in sorted(self.headers.keys() | other.headers.keys())),
            *((f"request header {name}", self.seen.get(name), other.seen.get(name))
              for name in sorted(self.seen.keys() | other.seen.keys())),
        ]  # fmt: skip
        return [f"{name}: {old!r}, now {new!r}" for name, old, new in pairs if old != new]


@dataclass(frozen=True, slots=True)
class Difference:
    """What was not answered equally; `lines` of the old file are those that the report says it of."""

    request: Asked
    said: tuple[str, ...]
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """How many requests and connections there were, and each that was not answered equally."""

    asked: int
    different: tuple[Difference, ...] = ()

    @property
    def equal(self) -> int:
        """Those without a difference."""
        return self.asked - len(self.different)

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        """Those of which no line of the report says so."""
        return tuple(each for each in self.different if not each.lines)


class Old(Protocol):
    """The old configuration, so that it runs here. `pools` lead from our names of servers to its own.

    `ports` say where its ports are now (those of tcp as well, if it can), `encrypted` which of them speak TLS.
    """

    pools: dict[str, str]
    ports: dict[int, int]
    encrypted: dict[int, bool]

    def words(self) -> list[str]:
        """Words of it that may be hosts or paths."""
        ...

    def write(self, stubs: Mapping[str, int], folder: Path, spare: Iterator[int], certificate: Path) -> None:
        """Write it for this machine, with stub servers on spare ports. Raises NotReplayable."""
        ...

    def running(self, folder: Path) -> AbstractContextManager[None]:
        """Run it. Raises NotReplayable."""
        ...

    def lines(self, request: Asked, before: Answer, after: Answer) -> tuple[int, ...]:
        """Lines of the report that together say every difference; none where one is said by none."""
        ...
