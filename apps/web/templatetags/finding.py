"""Tags of templates that lead from an object to others."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from apps.accounts.actors import Actor
from apps.web.changes.history import history_of
from apps.web.finding.definition import YAML, card_of
from apps.web.finding.kinds import kind_of
from apps.web.finding.sorting import Sorting
from apps.web.finding.used_by import users_shown

register = template.Library()


@register.inclusion_tag("components/siblings.html")
def siblings(row: Any) -> dict[str, Any]:
    """The last crumb of an object's page, with a menu that costs nothing until it is opened."""
    name, kind = kind_of(row)
    named = getattr(row, kind.label)
    return {"kind": name, "pk": row.pk, "name": named, "word": kind.word, "list_url": kind.list_url()}


@register.inclusion_tag("components/used_by.html", takes_context=True)
def used_by(context: Context, row: Any) -> dict[str, Any]:
    """A card with whoever uses the object, as far as the actor sees them."""
    actor = context["actor"]
    return {"row": row, "users": users_shown(actor, row), "word": kind_of(row)[1].word, "actor": actor}


@register.inclusion_tag("components/definition.html", takes_context=True)
def definition(context: Context, row: Any) -> dict[str, Any]:
    """The YAML of an object of the viewer, with tabs for more; `?tab=` of the page opens another one."""
    asked = context["request"].GET
    card = card_of(context["actor"], row, asked.get("tab", YAML), asked.get("fleet", ""))
    return {"card": card, "here": True}


@register.filter
def owns(actor: Actor, row: Any) -> bool:
    """Whether the row is the actor's business, and not only shared."""
    return actor.owns(row)


@register.inclusion_tag("components/history.html", takes_context=True)
def history(context: Context, row: Any) -> dict[str, Any]:
    """A card with the newest changes of an object; nothing for whom it is only shared with."""
    actor = context["actor"]
    if not actor.owns(row):
        return {"owned": False}
    rows, more = history_of(actor, row)
    return {"owned": True, "rows": rows, "more": more}


@register.inclusion_tag("components/sort_head.html", takes_context=True)
def sort_head(context: Context, head: str, numbers: bool = False) -> dict[str, Any]:
    """The head of a column: a link that sorts, where the table is longer than a page and the column can be sorted."""
    sorting: Sorting = context["sorting"]
    chosen = head == sorting.head
    # Once, the other way round, and as it was.
    following = None if chosen and sorting.down else f"{'-' if chosen else ''}{head}"
    url = _without(context, sort=following) if context["paged"] and head in sorting.columns else ""
    return {"head": head, "numbers": numbers, "chosen": chosen and bool(url), "down": sorting.down, "url": url}


@register.inclusion_tag("components/filter_chips.html", takes_context=True)
def filter_chips(context: Context) -> dict[str, Any]:
    """Each filter that narrows a list, with a button that removes it."""
    return {"chips": [(chip, _without(context, **{chip.name: None})) for chip in context["chips"]]}


@register.inclusion_tag("components/filters_folded.html", takes_context=True)
def filters_folded(context: Context) -> dict[str, Any]:
    """The first element of a form with several filters: on a phone it opens the others."""
    return {"count": len(context["chips"]), "open": bool(context.get("field_errors"))}


def _without(context: Context, **changed: str | None) -> str:
    """The URL of the first page with something else in its query; what is empty does not stand there."""
    query = context["request"].GET.copy()
    for name in ("after", "before", "cursor", "partial", *changed):
        query.pop(name, None)
    for name in [name for name in query if not query[name]]:
        del query[name]
    query.update({name: value for name, value in changed.items() if value})
    return f"?{query.urlencode()}" if query else context["request"].path
