"""Inside a dry run: one kind of what is pushed to, looked at with the change and without it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from apps.accounts.actors import Actor

Side = TypeVar("Side")
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Watch(Generic[Side, Told]):
    """Fleets, stacks or zones, all by a name that no other has.

    `numbers` says the desired generation of each; `frozen` what each of these names must run or serve now, in a number
    of queries that depends on no number of rows in them; `difference` what one would do otherwise, None where there is
    nothing to tell (before None: the change makes it; after None: it goes with the change).
    """

    numbers: Callable[[], dict[str, int]]
    frozen: Callable[[Collection[str]], dict[str, Side]]
    difference: Callable[[Actor, str, Side | None, Side | None], Told | None]


@dataclass(slots=True)
class Touched(Generic[Side, Told]):
    """What a change touches of one kind: made before the change, told of it while it stands, and when it is undone.

    `raised` are the generations that would make the change live.
    """

    watch: Watch[Side, Told]
    raised: dict[str, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _before: dict[str, Side] = field(default_factory=dict)
    _after: dict[str, Side] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The generations as they are."""
        self._numbers = self.watch.numbers()

    def look_after(self) -> None:
        """The change stands: which did it raise, or take away, and what must these do now?"""
        now = self.watch.numbers()
        self.raised = {name: number for name, number in now.items() if number != self._numbers.get(name)}
        self._names = sorted({*self.raised, *(self._numbers.keys() - now.keys())})
        self._after = self.watch.frozen(self.raised) if self.raised else {}

    def look_before(self) -> bool:
        """The change is undone: what must they do without it? False when somebody else changed them meanwhile."""
        if not self._names:
            return True
        self._before = self.watch.frozen(self._names)
        now = self.watch.numbers()
        return all(now.get(name) == self._numbers.get(name) for name in self._names)

    def told(self, actor: Actor) -> tuple[Told, ...]:
        """What they would do otherwise, by name, as far as the actor may know."""
        find = self.watch.difference
        found = (find(actor, name, self._before.get(name), self._after.get(name)) for name in self._names)
        return tuple(each for each in found if each is not None)
