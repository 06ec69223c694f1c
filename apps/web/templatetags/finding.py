"""Tags of templates that lead from an object to others."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from apps.web.finding.kinds import kind_of
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
