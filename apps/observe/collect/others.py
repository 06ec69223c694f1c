"""How collectors tell each other what their nodes say: each in its own row, read by the one that leads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.db.models import F
from django.db.models.functions import Now

from apps.observe.evaluate.facts import Facts, Pair
from apps.observe.models import CollectorMember


@dataclass(slots=True)
class Others:
    """What was told last, by us and to us; `changed` says whether somebody came or went since the last look."""

    trips: dict[Pair, int] = field(default_factory=dict)
    changed: bool = False
    _told: Facts | None = None
    _heard: dict[str, tuple[int, Facts]] = field(default_factory=dict)

    def tell(self, holder: str, facts: Facts) -> None:
        """Write them where they are others than before. Raises django.db.Error."""
        facts = replace(facts, trips=self.trips)
        if facts != self._told:
            CollectorMember.objects.filter(holder=holder).update(facts=facts.to_json(), turn=F("turn") + 1)
            self._told = facts

    def tell_again(self) -> None:
        """What was told last was not kept."""
        self._told = None

    def hear(self, holder: str) -> list[Facts]:
        """What all the others that live say; one that is gone says nothing. Raises django.db.Error."""
        self.tell_again()
        rows = CollectorMember.objects.filter(until__gt=Now()).exclude(holder=holder)
        turns = dict(rows.values_list("holder", "turn"))
        self.changed = turns.keys() != self._heard.keys()
        moved = [name for name, turn in turns.items() if name not in self._heard or self._heard[name][0] != turn]
        said = rows.filter(holder__in=moved).values_list("holder", "turn", "facts") if moved else ()
        fresh = {name: (turn, Facts.from_json(facts)) for name, turn, facts in said}
        self._heard = {name: each for name, each in (self._heard | fresh).items() if name in turns}
        return self.facts()

    def facts(self) -> list[Facts]:
        """As heard last."""
        return [facts for _, facts in self._heard.values()]
