"""What the address of the page asks for: account, filter and window, and addresses that ask for something near it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.core.errors import FieldError, Invalid
from apps.logs import searching
from apps.logs.filters import word_of, words_of
from apps.logs.searching import Question, instant_of, question, until_now
from apps.web.finding.sorting import Chip, chips

# The windows that end now, by the word in the address.
LENGTHS = {
    "15m": ("15 minutes", timedelta(minutes=15)),
    "1h": ("Hour", timedelta(hours=1)),
    "6h": ("6 hours", timedelta(hours=6)),
    "24h": ("Day", timedelta(days=1)),
    "7d": ("7 days", timedelta(days=7)),
}
USUAL = "1h"
LABELS = {"q": "Filter", "account": "Account", "last": "Last", "from": "From", "to": "To"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters as they were sent; `last` is empty where `from` and `to` say the window."""

    text: str
    account: str
    last: str
    start: str
    end: str
    before: str

    @classmethod
    def read(cls, sent: QueryDict) -> Asked:
        """Parameters of an address; what is left out is the last hour of the own account."""
        start, end = sent.get("from", ""), sent.get("to", "")
        last = "" if start or end else sent.get("last", USUAL)
        return cls(sent.get("q", "").strip(), sent.get("account", ""), last, start, end, sent.get("before", ""))

    def question(self, actor: Actor) -> Question:
        """The question to the store. Raises Invalid."""
        start, end = self.window()
        return question(actor, account=self.account or None, text=self.text, start=start, end=end)

    def window(self) -> tuple[datetime, datetime]:
        """From when until when. Raises Invalid."""
        if not self.last:
            return instant("from", self.start), instant("to", self.end)
        if self.last not in LENGTHS:
            detail = f"Choose one of {', '.join(LENGTHS)}, or a beginning and an end."
            raise Invalid([FieldError("/last", "unknown", detail)])
        return until_now(LENGTHS[self.last][1])

    def address(self, **other: str) -> str:
        """`?…` that asks the same but for `other` (`q`, `last`, `from`, `to`, `before`)."""
        window = {"last": self.last} if self.last else {"from": self.start, "to": self.end}
        wanted = {"q": self.text, "account": self.account, **window, **other}
        if "from" in other:
            wanted.pop("last", None)
        found = QueryDict(mutable=True)
        found.update({name: value for name, value in wanted.items() if value and (name, value) != ("last", USUAL)})
        return f"?{found.urlencode()}"

    def chips(self) -> list[Chip]:
        """Everything here that is not what one sees without asking."""
        said = {
            "q": self.text,
            "account": self.account,
            "last": "" if self.last == USUAL else self.last,
            "from": self.start,
            "to": self.end,
        }
        words = {searching.EVERY: "All accounts"} | {word: title for word, (title, _) in LENGTHS.items()}
        return chips(said, LABELS, words)

    def with_word(self, field: str, value: str) -> tuple[str, bool]:
        """The address with a word for this value added, or taken away where the filter has it, and whether it has."""
        word = word_of(field, value)
        words = words_of(self.text)
        if word in words:
            return self.address(q=" ".join(each for each in words if each != word)), True
        return self.address(q=f"{self.text} {word}".strip()), False


def instant(field: str, text: str) -> datetime:
    """An instant of a form or an address; without a zone it is UTC."""
    found = instant_of(text)
    if found is None:
        label = {"from": "beginning", "to": "end"}.get(field, "time")
        detail = f"Give the {label} as a date and time, such as 2026-01-31T14:30."
        raise Invalid([FieldError(f"/{field}", "instant", detail)])
    return found if found.tzinfo else found.replace(tzinfo=UTC)
