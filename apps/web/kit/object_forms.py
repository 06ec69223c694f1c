"""The page with the form of one object of the platform: its fields in groups, and what saving it leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from apps.accounts.actors import Actor
from apps.definitions.reading.describing import describe
from apps.definitions.selectors import only
from apps.definitions.writing.rules.usage import USED
from apps.web.kit.pages import PageRequest, onward, operators_only, page, post_page, show
from apps.web.kit.presets import begin_with
from apps.web.kit.saving import deleted_by_name, save_form, version_shown
from apps.web.kit.shape_forms import Group, Names, ShapeForm

Crumb = tuple[str, str]
AForm = TypeVar("AForm", bound=forms.Form)
# Fields of one object alone.
OF_ITSELF = ("name", "/name", "account", "/account", "version", "began", "reason")


class ObjectForm(ShapeForm):
    """Its own fields in one group, and those of each block in a group that folds."""

    noun = ""

    def __init__(self, data: QueryDict | None, *, stored: Any, names: Names) -> None:
        super().__init__(data, stored=stored, names=names)
        self.stored = stored

    @property
    def groups(self) -> list[Group]:
        """The fields by heading."""
        return [Group(capitalized(self.noun), self.fields_without("network")), *self._network()]

    def fields_without(self, block: str) -> list[forms.BoundField]:
        """All fields but those of a block."""
        return [self[name] for name in self.fields if f"/{block}/" not in name]

    def _network(self) -> list[Group]:
        fields = [self[name] for name in self.fields if "/network/" in name]
        return [Group("Network", fields)] if fields else []


@dataclass(frozen=True, slots=True)
class Way:
    """Where a form is come from, as crumbs (URL, words), and the name of the page that shows what was saved."""

    crumbs: tuple[Crumb, ...]
    to: str

    @classmethod
    def of(cls, back: str, words: str, to: str = "") -> Way:
        """From a list, and on to the page of the object, or to the list again."""
        return cls(((reverse(back), words),), to)


def edit_object(request: PageRequest, form: ObjectForm, way: Way, copy: str = "") -> HttpResponse:
    """Show the form, or store what was typed and go on; `copy` is the page on which another like it is made."""
    noun = capitalized(form.noun)
    saved = save_form(request, form, form.kind, form.stored, form.spec, lambda row: f"{noun} {row.name} is saved.")
    if saved:
        return onward(request, way.to, saved.pk) if way.to else onward(request, way.crumbs[-1][0])
    return show_form(request, form, way, stored=form.stored, name=form.stored.name if form.stored else "", copy=copy)


@dataclass(frozen=True, slots=True)
class OperatorPages:
    """The pages with which operators make, change and delete the objects of one kind of the platform.

    `what` is their name where somebody else looks for them, `back` the list (URL, words), `to` the page of one object.
    """

    form: Callable[..., ObjectForm]
    rows: Callable[[Actor], QuerySet[Any]]
    what: str
    back: Crumb
    to: str = ""

    def new(self, request: PageRequest) -> HttpResponse:
        """An empty form, or one with what another says (`?copy=7`), and making one."""
        operators_only(request.actor, self.what)
        return self._edit(request, None, copied(request, self.rows(request.actor)))

    def edit(self, request: PageRequest, pk: int) -> HttpResponse:
        """The filled form, and changing it."""
        operators_only(request.actor, self.what)
        return self._edit(request, only(self.rows(request.actor), pk))

    def urls(self, nouns: str, noun: str, *, deletes: bool = False) -> list[URLPattern]:
        """Where they are: `fleets/new`, `fleets/7/edit` and, unless that is a page of its own, `fleets/7/delete`."""
        delete = path(f"{nouns}/<int:pk>/delete", post_page(self.delete), name=f"{noun}-delete")
        return [
            path(f"{nouns}/new", page(self.new), name=f"{noun}-new"),
            path(f"{nouns}/<int:pk>/edit", page(self.edit), name=f"{noun}-edit"),
            *([delete] if deletes else []),
        ]

    def _edit(self, request: PageRequest, stored: Any, source: Any = None) -> HttpResponse:
        request.actor.may_write()
        form = self.form(request.POST or None, actor=request.actor, stored=stored)
        if source is not None:
            form.begin_with(describe(source))
        copy = copy_of(form.noun.lower().replace(" ", "-"), stored)
        return edit_object(request, form, Way.of(*self.back, self.to), copy)

    def delete(self, request: PageRequest, pk: int) -> HttpResponse:
        """Delete one that nothing needs any more, once its name was typed."""
        operators_only(request.actor, self.what)
        row = only(self.rows(request.actor), pk)
        request.actor.may_write()
        kind = type(row).__name__
        one = f"{self.what[:-3]}y" if self.what.endswith("ies") else self.what.removesuffix("s")
        done = f"{capitalized(one)} {row.name} is deleted."
        gone = deleted_by_name(request, kind, row, done)
        return redirect(self.to, pk) if self.to and not gone else redirect(self.back[0])


def copied(request: PageRequest, rows: QuerySet[Any]) -> Any | None:
    """What a new object begins as, of `?copy=7`; None for an empty one. Raises NotFound."""
    text = request.GET.get("copy", "")
    return only(rows, int(text)) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def form_for(request: PageRequest, stored: Any | None, rows: QuerySet[Any], form_of: Callable[..., AForm]) -> AForm:
    """The form of what is stored, or of something new, which may begin as a copy of one of the rows (`?copy=7`).

    `form_of` makes it of what was sent, None for nothing, and `stored`, which is a row or None.
    """
    form = form_of(request.POST if request.method == "POST" else None, stored=stored)
    source = copied(request, rows) if stored is None and not form.is_bound else None
    if source is not None:
        begin_with(form, _copied_values(form, form_of(None, stored=source)))
        for owner in {"account", "/account"} & form.fields.keys():
            begin_with(form, {owner: source.account.name})
    return form


def _copied_values(form: forms.Form, other: forms.Form) -> dict[str, Any]:
    """What another form says of fields of this one: all but name, version and what is secret."""
    return {
        name: other[name].value()
        for name, field in other.fields.items()
        if name in form.fields and name not in OF_ITSELF and not isinstance(field.widget, forms.PasswordInput)
    }


def copy_of(noun: str, stored: Any) -> str:
    """The address of the form in which a copy of what is stored begins; empty for something new."""
    return f"{reverse(f'web:{noun}-new')}?copy={stored.pk}" if stored else ""


def show_form(request: PageRequest, form: Any, way: Way, *, stored: Any, name: str, copy: str = "") -> HttpResponse:
    """The form with what stands in it: `name` is what it edits, empty for something new; `copy` where it is copied."""
    context = {
        "form": form,
        "stored": stored,
        "name": name,
        "crumbs": way.crumbs,
        "copy": copy,
        # What has a page of its own says it there.
        "shows_users": isinstance(stored, USED) and not way.to,
        "version": version_shown(request, stored),
    }
    return show(request, "pages/object_form.html", context, status=422 if form.is_bound else 200)


def capitalized(noun: str) -> str:
    """As a sentence begins: `static IP` → `Static IP`."""
    return f"{noun[0].upper()}{noun[1:]}"
