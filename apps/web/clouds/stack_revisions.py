"""One revision of a stack: what its document says, and how it differs from another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse

from apps.core.errors import NotFound
from apps.stacks import selectors
from apps.stacks.review import documents
from apps.stacks.review.documents import Change, Document
from apps.web.kit.differences import SHOWN_LINES, FileDifference, as_text, of_json
from apps.web.kit.pages import PageRequest, operators_only, page, show

REVISIONS_OFFERED = 50


@page
def revision(request: PageRequest, pk: int, number: int) -> HttpResponse:
    """A revision against the one before, against another (`?against=`), or the whole of it (`?whole=1`)."""
    operators_only(request.actor, "revisions of stacks")
    found = documents.read(request.actor, pk, number)
    context: dict[str, Any] = {"stack": found.revision.stack, "revision": found.revision}
    if request.GET.get("whole") == "1":
        return show(request, "pages/stacks/document.html", context | {"text": as_text(found.parts)})
    against = _against(request, found)
    before = None if against is None else documents.read(request.actor, pk, against)
    changes = documents.compare(before, found)
    files = list(_files(changes))
    context |= {
        "against": against,
        "files": files,
        "count": len(changes),
        "cut": len(changes) - len(files),
        "others": selectors.revisions(request.actor, pk).exclude(number=number)[:REVISIONS_OFFERED],
    }
    return show(request, "pages/stacks/revision.html", context)


def _against(request: PageRequest, found: Document) -> int | None:
    """The revision that was asked for, else the one before."""
    asked = request.GET.get("against", "")
    if not asked:
        return documents.number_before(request.actor, found.revision)
    if not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        raise NotFound("There is no such revision, or you may not see it.")
    return int(asked)


def _files(changes: Iterable[Change]) -> Iterator[FileDifference]:
    """A difference for each part, as many as a page can show."""
    left = SHOWN_LINES
    for change in changes:
        if not left:
            return
        lines = of_json(change.before, change.after)[:left]
        left -= len(lines)
        yield FileDifference(f"{change.address}  {change.label}".rstrip(), lines)
