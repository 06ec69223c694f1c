"""What a look answers: the objects that are wrong, and those of which nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """An object that is wrong: whose it is, what people call it, what is wrong as a sentence, since when.

    `{}` in the title stands for the name: operators read it with the account in front of it.
    `value` is what a threshold is compared with, None where the look itself has judged. `causes` are keys: what is
    wrong for the same cause shares one. `own` is told to the account itself alone, not to operators.
    """

    kind: str
    object_id: int
    account_id: int | None
    account: str
    name: str
    title: str
    detail: str
    since: datetime
    page: str
    causes: tuple[str, ...]
    value: float | None = None
    own: bool = False

    def titled(self, account_id: int) -> str:
        """The title as people of this account read it."""
        foreign = self.account and account_id != self.account_id
        return self.title.replace("{}", f"{self.account}/{self.name}" if foreign else self.name)

    @property
    def key(self) -> Key:
        """What the object is."""
        return self.kind, self.object_id


@dataclass(frozen=True, slots=True)
class Look:
    """What one watch sees now; `blind` when nobody knows of any object, `unknown` are single ones.

    Of what is not known an alert neither begins nor ends.
    """

    seen: tuple[Seen, ...] = ()
    unknown: frozenset[Key] = field(default_factory=frozenset)
    blind: bool = False


BLIND = Look(blind=True)
