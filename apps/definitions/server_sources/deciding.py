"""Decides which servers a backend has after a source answered; pure.

A source that lists nothing never empties a backend, and one that lists less than half of what is known is believed only
when it says so several times: both happen more often to a registry that restarts than to servers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from apps.compiler import grammar

# So many answers in a row must be as short; at two seconds each.
CONFIRMED = 5
DEFAULT_WEIGHT, HIGHEST_WEIGHT = 100, 256
LONGEST_NAME = 63
# Of what a source says: no name of a server is longer.
LONGEST_TEXT, STRANGE = 255, "\N{REPLACEMENT CHARACTER}"
Endpoint = tuple[str, int]  # address or name, port


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server as a source lists it; `hint` is what its name is made of, a weight of None is for us to say.

    One that is `leaving` still serves those who are with it, and gets no new clients. Whatever a source says, its texts
    are short and can be stored and shown; with what stands for the rest, no address is one.
    """

    address: str
    port: int
    weight: int | None = None
    backup: bool = False
    hint: str = ""
    leaving: bool = False

    def __post_init__(self) -> None:
        """Texts of others become harmless ones."""
        object.__setattr__(self, "address", harmless(self.address))
        object.__setattr__(self, "hint", harmless(self.hint))

    @property
    def endpoint(self) -> Endpoint:
        """Where it is: two entries of one endpoint are one server."""
        return self.address, self.port


@dataclass(frozen=True, slots=True)
class Decision:
    """The servers that the backend has from now on by name, None for as it was; `short` answers in a row, and why."""

    servers: Mapping[str, FoundServer] | None
    short: int = 0
    held: str = ""


def decide(
    known: Mapping[Endpoint, str], found: Sequence[FoundServer], short: int, leaving: Collection[Endpoint] = ()
) -> Decision:
    """What follows from an answer, where these places (with the names of their servers) are known.

    Those that were `leaving` at the last answer are expected to be gone: their absence makes no answer short.
    """
    listed = {each.endpoint: each for each in found}
    if all(each.leaving for each in found):
        stays = f"; the {len(known)} known ones stay" if known else ""
        return Decision(None, 0, f"The source lists no server that can be used{stays}.")
    expected = known.keys() - set(leaving)
    still = len(listed.keys() & expected)
    if 2 * still < len(expected) and short + 1 < CONFIRMED:
        held = f"The source lists {still} of {len(expected)} known servers; they stay until it has said so for a while."
        return Decision(None, short + 1, held)
    names = {endpoint: name for endpoint, name in known.items() if endpoint in listed}
    taken = set(names.values())
    for endpoint in sorted(listed.keys() - names.keys()):
        names[endpoint] = _name(listed[endpoint], taken)
        taken.add(names[endpoint])
    return Decision({names[endpoint]: each for endpoint, each in listed.items()})


def harmless(text: str) -> str:
    """A text of others, short and printable."""
    shown = "".join(sign if sign.isprintable() else STRANGE for sign in text[:LONGEST_TEXT])
    return shown + STRANGE if len(text) > LONGEST_TEXT else shown


def short_number(text: str) -> int | None:
    """The number of at most five digits that a text of others is; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else None


def _name(server: FoundServer, taken: Collection[str]) -> str:
    """A name that no other server of the backend has."""
    text = re.sub("[^a-z0-9]+", "-", (server.hint or f"{server.address}-{server.port}").lower()).strip("-")
    base = text[: LONGEST_NAME - 6].strip("-") or "server"
    numbered = (f"{base}-{number}" if number else base for number in range(len(taken) + 1))
    return grammar.name(next(each for each in numbered if each not in taken))
