"""The page with the form of one object of the platform: its fields in groups, and what saving it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from apps.web.kit.pages import PageRequest, show
from apps.web.kit.saving import save_form, version_shown
from apps.web.kit.shape_forms import Group, Names, ShapeForm

Crumb = tuple[str, str]


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


def edit_object(request: PageRequest, form: ObjectForm, way: Way) -> HttpResponse:
    """Show the form, or store what was typed and go on."""
    noun = capitalized(form.noun)
    saved = save_form(request, form, form.kind, form.stored, form.spec, lambda row: f"{noun} {row.name} is saved.")
    if saved:
        return redirect(way.to, saved.pk) if way.to else redirect(way.crumbs[-1][0])
    return show_form(request, form, way, stored=form.stored, name=form.stored.name if form.stored else "")


def show_form(
    request: PageRequest, form: Any, way: Way, *, stored: Any, name: str, choices: dict[str, list[str]] | None = None
) -> HttpResponse:
    """The form with what stands in it: `name` is what it edits, empty for something new.

    `choices` are what browsers offer for its text fields, by the name of the list.
    """
    context = {
        "form": form,
        "stored": stored,
        "name": name,
        "crumbs": way.crumbs,
        "choices": choices or {},
        "version": version_shown(request, stored),
    }
    return show(request, "pages/object_form.html", context, status=422 if form.is_bound else 200)


def capitalized(noun: str) -> str:
    """As a sentence begins: `static IP` → `Static IP`."""
    return f"{noun[0].upper()}{noun[1:]}"
