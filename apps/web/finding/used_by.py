"""Who uses an object: the first ones for its page, and all of them as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.definitions.models import CapacityTest, Listener, Pool, Route, RoutePool
from apps.definitions.selectors import only
from apps.definitions.writing.rules.usage import USED, Use, counts, name_of, uses_of
from apps.web.finding.kinds import kind_named, kind_of
from apps.web.kit.pages import PageRequest, page, show

SHOWN, PER_PAGE = 20, 50


@dataclass(frozen=True, slots=True)
class User:
    """One object that uses another one, as tables show it."""

    word: str
    name: str
    url: str
    owner: str
    detail: str
    part: str


@dataclass(frozen=True, slots=True)
class Users:
    """The first users of an object, how many there are, and how many of other accounts, which are not named.

    `words` says how many there are of each kind.
    """

    shown: list[User]
    count: int
    words: str
    others: int
    url_name: str


def users_shown(actor: Actor, row: Any) -> Users:
    """The first users that the actor sees; those of other accounts are counted for the owner alone."""
    uses = uses_of(row)
    seen, others = _counted(actor, row, uses)
    there = [(use, number) for use, number in zip(uses, seen, strict=True) if number]
    shown = [_shown(use, row, each) for use, _ in there for each in _seen(actor, use, row)[:SHOWN]]
    words = ", ".join(_in_words(number, use.word) for use, number in there)
    return Users(shown[:SHOWN], sum(seen), words, others, kind_of(row)[0])


def _in_words(number: int, word: str) -> str:
    """`1 route`, `3 policies`, `overflow order of 2 pools`."""
    lead, of, noun = word.rpartition(" of ")
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{lead}{of}{number:,} {noun}"


def _counted(actor: Actor, row: Any, uses: list[Use]) -> tuple[list[int], int]:
    """How many users of each kind the actor sees, and how many there are besides.

    Whoever owns an object is told that much when it is deleted; nobody else is.
    """
    seen = [actor.visible(use.rows) for use in uses]
    owned = not actor.is_operator and getattr(row, "account_id", None) == actor.account.pk
    numbers = counts(*seen, *(use.rows for use in uses if owned))
    return numbers[: len(uses)], sum(numbers[len(uses) :]) - sum(numbers[: len(uses)]) if owned else 0


def _seen(actor: Actor, use: Use, used: Any) -> QuerySet[Any]:
    """Users that the actor sees, with what tells how much of a route a pool gets."""
    rows = actor.visible(use.rows)
    if rows.model is not Route or not isinstance(used, Pool):
        return rows
    shares = RoutePool.objects.select_related("pool").order_by("id")
    return rows.prefetch_related(Prefetch("pools", shares, to_attr="fetched_pools"))


def _shown(use: Use, used: Any, user: Any) -> User:
    return User(
        use.word, name_of(user), kind_of(user)[1].url(user), user.account.title, _detail(user), _part(used, user)
    )


def _detail(user: Any) -> str:
    """What tells it from others of its kind."""
    match user:
        case Route():
            return f"{user.hostname.name}{user.path}"
        case Listener():
            return f"port {user.port}"
        case CapacityTest():
            return str(user.hostname)
    return ""


def _part(used: Any, user: Any) -> str:
    """How much of a route's traffic a pool gets, in words."""
    if not (isinstance(used, Pool) and isinstance(user, Route)):
        return ""
    if user.mirror and user.mirror.pk == used.pk:
        return "copies"
    weights = {share.pool_id: share.weight for share in user.shares}
    total = sum(weights.values())
    return f"{100 * weights[used.pk] / total:.0f} %" if total else "nothing"


@page
def index(request: PageRequest, kind: str, pk: int) -> HttpResponse:
    """Everything that uses an object, a keyset page at a time: kind by kind, by name."""
    entry = kind_named(kind)
    row: Any = only(entry.rows(request.actor), pk)
    uses = uses_of(row) if isinstance(row, USED) else []
    after = request.GET.get("after", "")
    found, following = _page(request.actor, row, uses, after)
    context = {
        "row": row,
        "kind": kind,
        "word": entry.word,
        "back": entry.url(row),
        "list_url": entry.list_url(),
        "users": found,
        "others": _counted(request.actor, row, uses)[1],
        "after": after,
        "next_after": following,
    }
    return show(request, "pages/finding/used_by.html", context)


def _page(actor: Actor, row: Any, uses: list[Use], after: str) -> tuple[list[User], str | None]:
    """The next users behind `after` (`2/17`: the third kind, behind the row with this id), and what to go on behind."""
    at, behind = _cursor(actor, uses, after)
    found: list[tuple[int, Any]] = []
    for turn, use in enumerate(uses[at:], at):
        rows = _seen(actor, use, row)
        if turn == at and behind is not None:
            rows = rows.filter(name__gte=behind.name).exclude(name=behind.name, pk__lte=behind.pk)
        found += [(turn, each) for each in rows[: PER_PAGE + 1 - len(found)]]
        if len(found) > PER_PAGE:
            break
    shown = found[:PER_PAGE]
    more = f"{shown[-1][0]}/{shown[-1][1].pk}" if len(found) > PER_PAGE else None
    return [_shown(uses[turn], row, each) for turn, each in shown], more


def _cursor(actor: Actor, uses: list[Use], after: str) -> tuple[int, Any]:
    """Where `after` points; the beginning for anything else."""
    kind, _, pk = after.partition("/")
    if not all(text.isascii() and text.isdecimal() and len(text) < 19 for text in (kind, pk)) or int(kind) >= len(uses):
        return 0, None
    behind = actor.visible(uses[int(kind)].rows).filter(pk=int(pk)).first()
    return (int(kind), behind) if behind else (0, None)
