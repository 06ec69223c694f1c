"""The one way in which a form's object is saved, and what is shown at an edit conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse

from apps.core.errors import Conflict, FieldError, Invalid, Stale
from apps.definitions.services import PLATFORM, confirming, delete_object, save_object
from apps.web.kit.edit_conflicts import edit_conflict
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, show
from apps.web.kit.undoing import say_done


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What somebody typed for one object.

    `row` is what it changes, None for a new one, which needs a `name` and may belong to another `account`. Without a
    `version` it changes whatever the row is by now.
    """

    kind: str
    row: Any
    spec: dict[str, Any]
    name: str = ""
    account: str | None = None
    version: int | None = None
    reason: str = ""

    @property
    def owner(self) -> str | None:
        """The account's name; None: that of whoever saves, or of nobody in particular."""
        if self.row is None or self.kind in PLATFORM:
            return self.account or None
        return str(self.row.account.name)


def save(request: PageRequest, typed: Typed) -> Any:
    """Store what was typed and return the row.

    Raises Stale where somebody else saved meanwhile, and Invalid for everything else that is refused: a conflict of a
    new object is an error of its name, one of a stored object of the form as a whole.
    """
    row = typed.row
    try:
        with confirming(_confirmed_loss(request, row)):
            return _save_object(request, typed)
    except Stale:
        raise
    except Conflict as error:
        raise Invalid([FieldError("" if row else "/name", "conflict", error.detail)]) from error


def _confirmed_loss(request: PageRequest, row: Any) -> list[str]:
    """What may stop or be emptied by this, as somebody said who was shown what."""
    return [f"{row.account.name}/{row.name}"] if row and request.POST.get("confirm_loss") == "true" else []


def _save_object(request: PageRequest, typed: Typed) -> Any:
    row = typed.row
    return save_object(
        actor=request.actor,
        kind=typed.kind,
        name=row.name if row else typed.name,
        account=typed.owner,
        spec=typed.spec,
        create_only=row is None,
        expected_version=typed.version if row else None,
        reason=typed.reason,
    )


def save_form(
    request: PageRequest,
    form: forms.Form,
    kind: str,
    row: Any,
    spec: Callable[[], dict[str, Any]],
    done: Callable[[Any], str],
) -> Any | None:
    """The stored row, which the next page says is `done`; None where nothing was sent, or the form says why not."""
    if not (form.is_bound and form.is_valid()):
        return None
    typed = Typed(
        kind=kind,
        row=row,
        name=form.cleaned_data.get("/name", ""),
        account=form.cleaned_data.get("/account") or None,
        spec=spec(),
        version=version_sent(request) if row else None,
    )
    with refusals_in(form):
        saved = save(request, typed)
        tell(request, typed, saved, done(saved))
        return saved
    return None


def confirmed(request: PageRequest, name: str, purpose: str = "delete it") -> bool:
    """Whether somebody typed the name of what is about to go; if not, the next page says what to type."""
    if request.POST.get("confirm") == name:
        return True
    messages.error(request, f"Type {name} to {purpose}.")
    return False


def deleted(request: PageRequest, kind: str, row: Any, done: str, reason: str = "") -> bool:
    """Delete a row, and say on the next page that it is `done` or why it stays. Raises NotFound, Forbidden."""
    account = None if kind in PLATFORM else row.account.name
    with telling(request, done), confirming(_confirmed_loss(request, row)):
        delete_object(actor=request.actor, kind=kind, name=row.name, account=account, reason=reason)
        return True
    return False


def deleted_by_name(
    request: PageRequest, kind: str, row: Any, done: str, purpose: str = "delete it", reason: str = ""
) -> bool:
    """The same, once somebody typed its name."""
    return confirmed(request, row.name, purpose) and deleted(request, kind, row, done, reason)


@contextmanager
def telling(request: PageRequest, done: str = "", undo: str = "") -> Iterator[None]:
    """Do something, and say on the next page that it is `done`, or why it was refused; `undo` as in `say_done`."""
    try:
        yield
    except (Conflict, Invalid) as error:
        messages.error(request, error.detail)
    else:
        if done:
            say_done(request, done, undo)


def tell(request: PageRequest, typed: Typed, saved: Any, done: str) -> None:
    """Say on the next page that it is `done`, or that there was nothing to do."""
    if typed.row is not None and saved.version == typed.row.version:
        messages.info(request, "Nothing to save. There are no changes.")
    else:
        say_done(request, done)


def version_sent(request: PageRequest) -> int:
    """The version that a form carried along; 0, which no stored row has, where it carried none."""
    text = request.POST.get("version", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def version_shown(request: PageRequest, stored: Any | None) -> int:
    """What a form carries along: the version that somebody began with, also where the form is shown again.

    So what was stored meanwhile is refused each time, until it was loaded and looked at.
    """
    if request.method == "POST":
        return version_sent(request)
    return int(stored.version) if stored else 0


def two_edits(
    request: PageRequest,
    template: str,
    typed: Typed,
    *,
    live: Any,
    began: str,
    again: Callable[[dict[str, Any]], dict[str, Any]],
) -> HttpResponse:
    """All three sides, and a form that holds both changes; sending it decides over what is `live` now.

    `began` is what the form remembered of its beginning; `again` makes the page's context from the spec of both.
    """
    conflict = edit_conflict(request.actor, typed.kind, live, typed.spec, began)
    return show(request, template, again(conflict.merged) | {"conflict": conflict}, status=409)
