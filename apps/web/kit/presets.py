"""Presets: links that fill in a form as it is used most; what they fill in can be changed, and none of it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Preset:
    """What a link is called, what it is for, and the fields that it fills in."""

    label: str
    about: str
    fields: Mapping[str, Any]


def begin_with(form: forms.Form, values: Mapping[str, Any]) -> None:
    """Let fields of a form that nobody sent say this; who looked at one before keeps what it said, so it is told."""
    for name, value in values.items():
        form.initial[name] = form[name].initial = value


def fill_in(request: HttpRequest, form: forms.Form, presets: Mapping[str, Preset]) -> Preset | None:
    """The preset of `?preset=`, in a form that is not sent yet; `?partial=` brings along what was typed so far."""
    chosen = presets.get(request.GET.get("preset", ""))
    if chosen is None or (form.is_bound and "partial" not in request.GET):
        return None
    typed = {name: form[name].value() for name in form.fields} if form.is_bound else {}
    form.is_bound = False
    begin_with(form, typed | {name: value for name, value in chosen.fields.items() if name in form.fields})
    return chosen
