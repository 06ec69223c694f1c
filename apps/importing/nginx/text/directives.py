"""A directive of nginx.conf with its words and its block, and what a request inherits from the blocks around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.importing.verdicts import Line


@dataclass(eq=False, slots=True)
class Directive:
    """`block` are the directives inside, None where it has none; `parent` is the block that it stands in."""

    name: str
    args: tuple[str, ...]
    line: Line
    parent: Directive | None = None
    block: list[Directive] | None = None
    _by_name: dict[str, list[Directive]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.block or ():
            self._by_name.setdefault(each.name, []).append(each)

    def add(self, directive: Directive) -> None:
        """One more at the end of the block."""
        if self.block is not None:
            self.block.append(directive)
            self._by_name.setdefault(directive.name, []).append(directive)

    def each(self, *names: str) -> Iterator[Directive]:
        """Directives of these names in the block itself."""
        there = [name for name in names if name in self._by_name]
        if len(there) < 2:  # else in their order; a block of many servers is not walked for nothing
            return iter(self._by_name[there[0]] if there else ())
        return (each for each in self.block or () if each.name in names)

    def last(self, name: str) -> Directive | None:
        """The one that counts of those in the block itself."""
        return next(iter(self._by_name.get(name, ())[-1:]), None)

    def inherited(self, name: str) -> Directive | None:
        """The one of the nearest block around that has one, this block first."""
        return next(iter(self.all_inherited(name)[-1:]), None)

    def all_inherited(self, name: str) -> list[Directive]:
        """All of the nearest block that has any: a block that says one forgets those around it."""
        block: Directive | None = self
        while block is not None:
            if name in block._by_name:
                return list(block._by_name[name])
            block = block.parent
        return []

    def everything(self) -> Iterator[Directive]:
        """All directives below."""
        for each in self.block or ():
            yield each
            yield from each.everything()


def value_of(directive: Directive | None, default: str = "") -> str:
    """Its first word."""
    return directive.args[0] if directive is not None and directive.args else default
