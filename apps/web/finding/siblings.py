"""What else there is of an object's kind: the menu behind the last crumb of its page, made when it is opened."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.definitions.selectors import only
from apps.web.finding.kinds import kind_named
from apps.web.kit.pages import PageRequest, page, show

SHOWN = 20


@page
def index(request: PageRequest, kind: str, pk: int) -> HttpResponse:
    """The first objects of the same kind by name; `?q=` narrows, and is asked for where there are more."""
    entry = kind_named(kind)
    rows = entry.rows(request.actor).prefetch_related(None)
    row: Any = only(rows, pk)
    text = request.GET.get("q", "").replace("\0", "").strip()[:127]
    if text:
        rows = rows.filter(**{f"{entry.label}__icontains": text})
    names = ("pk", entry.key, entry.label, "account__name")
    found = list(rows.order_by(entry.label, "pk").values_list(*names)[: SHOWN + 1])
    context = {
        "kind": kind,
        "pk": pk,
        "word": entry.word,
        "list_url": entry.list_url(),
        "entries": [
            {"here": row.pk == each, "url": entry.url_of(key), "name": name, "owner": owner}
            for each, key, name, owner in found[:SHOWN]
        ],
        "more": len(found) > SHOWN,
        "shown": SHOWN,
        "names_owner": request.actor.is_operator,
    }
    return show(request, "pages/finding/siblings.html", context)
