"""The page and the feed that everybody may read: made once for some seconds, whoever asks and however many.

Who asks is never looked at: neither the session nor an account. So what is kept for one visitor is right for all, here
and in every cache on the way, and what is not public is not found by anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from django.core.cache.backends.locmem import LocMemCache
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.http import require_safe

from apps.core.clock import now
from apps.definitions.models import StatusPage
from apps.status.selectors import public_page
from apps.status.showing import incidents_of, show_page
from apps.web.drawing.days import drawn

SECONDS = 10
# While somebody makes it anew, the others get what was made before, if it is not older.
STALE_SECONDS = 60
ENTRIES = 50
# Of this process alone: a crowd costs neither the database nor Redis anything.
KEPT = LocMemCache("status pages", {"OPTIONS": {"MAX_ENTRIES": 400}})


@dataclass(frozen=True, slots=True)
class Made:
    """An answer that was made."""

    body: bytes
    etag: str


@require_safe
def page(request: HttpRequest, name: str) -> HttpResponse:
    """How an account's systems are."""
    return _answer(request, name, "page", "text/html; charset=utf-8", _page)


@require_safe
def feed(request: HttpRequest, name: str) -> HttpResponse:
    """Its incidents as an Atom feed."""
    return _answer(request, name, "feed", "application/atom+xml; charset=utf-8", _feed)


def _answer(
    request: HttpRequest, name: str, what: str, media: str, make: Callable[[StatusPage, str], str]
) -> HttpResponse:
    found = public_page(name)
    if found is None:
        raise Http404
    origin = f"{request.scheme}://{request.get_host()}"
    made = _made(f"{what} {found.pk} {found.version} {origin}", lambda: make(found, origin))
    response = HttpResponse(made.body, content_type=media)
    response["ETag"] = made.etag
    response["Cache-Control"] = f"public, max-age={SECONDS}"
    return get_conditional_response(request, etag=made.etag, response=response) or response


def _made(key: str, make: Callable[[], str]) -> Made:
    """What was made within the last seconds by this process; one request makes it anew, the others do not wait."""
    key = hashlib.sha256(key.encode()).hexdigest()
    kept: Made | None = KEPT.get(key)
    if kept is not None and not KEPT.add(f"{key}-turn", True, SECONDS):
        return kept
    body = make().encode()
    fresh = Made(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    KEPT.set(key, fresh, STALE_SECONDS)
    KEPT.add(f"{key}-turn", True, SECONDS)
    return fresh


def _page(row: StatusPage, _origin: str) -> str:
    shown = show_page(row, now())
    return render_to_string("pages/status_pages/public.html", {"shown": shown, "drawn": drawn(shown)})


def _feed(row: StatusPage, origin: str) -> str:
    instant = now()
    address = f"{origin}{reverse('status:page', args=[row.name])}"
    made = Atom1Feed(
        title=row.title,
        link=address,
        description="",
        feed_url=f"{origin}{reverse('status:feed', args=[row.name])}",
        author_name=row.title,
        feed_guid=address,
    )
    for incident in incidents_of(row, instant)[:ENTRIES]:
        updates = list(incident.updates.all())
        made.add_item(
            title=f"{incident.title} ({incident.word_at(instant).lower()})",
            link=f"{address}#incident-{incident.number}",
            description=render_to_string("pages/status_pages/entry.html", {"row": incident, "updates": updates}),
            unique_id=f"{address}#incident-{incident.number}",
            pubdate=incident.created_at,
            updateddate=max([incident.created_at, *(each.at for each in updates)]),
        )
    return str(made.writeString("utf-8"))
