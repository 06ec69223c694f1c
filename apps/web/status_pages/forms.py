"""The forms of status pages and of what people write on them, made of their shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.definitions.models import StatusPage
from apps.definitions.shapes.base.shape import Shape
from apps.status.models import Incident
from apps.status.shapes import IncidentSpec, UpdateSpec
from apps.status.states import RESOLVED
from apps.web.kit.object_forms import ObjectForm
from apps.web.kit.shape_fields import ask_for_owner
from apps.web.kit.shape_forms import DocumentForm, Group

_COMPONENTS, _TIMES = "/spec/components", ("begins_at", "ends_at")
_LINES = {"rows": 8, "spellcheck": "false", "class": "long"}


class StatusPageForm(ObjectForm):
    """A status page; its components stand one on each line: `Checkout = shop-checkout, shop-cart`."""

    kind, noun = "StatusPage", "status page"

    def __init__(self, data: QueryDict | None, *, stored: StatusPage | None, actor: Actor) -> None:
        super().__init__(data, stored=stored, names={})
        self.fields[_COMPONENTS] = forms.CharField(
            label="Components",
            required=False,
            widget=forms.Textarea(attrs=_LINES),
            initial=_written(stored.components) if stored else "",
            help_text="One per line: what visitors call it, then the names of its routes: Checkout = shop, shop-cart",
        )
        self.order_fields(["/name", "/spec/title", _COMPONENTS, "/spec/rules", "/spec/public"])
        if stored is None and actor.is_operator:
            ask_for_owner(self)

    def spec(self) -> dict[str, Any]:
        """The document of what was typed."""
        lines = [line for line in self.cleaned_data[_COMPONENTS].splitlines() if line.strip()]
        return self.document() | {"components": [_component(line) for line in lines]}


class WrittenForm(DocumentForm):
    """Something that people write for visitors."""

    noun = ""

    def __init__(self, data: QueryDict | None, shape: type[Shape], names: dict[str, Any]) -> None:
        super().__init__(data, shape=shape, document=None, names=names)
        self.fields["/spec/text"].widget = forms.Textarea(attrs={"rows": 5, "class": "long"})

    def spec(self) -> dict[str, Any]:
        """The document of what was typed, times as documents have them."""
        found = self.document()
        for name in _TIMES:
            if value := found.get(name):
                found[name] = f"{value}:00Z" if len(value) == 16 else value
        return found

    @property
    def groups(self) -> list[Group]:
        """All of it at once."""
        return [Group(self.noun.capitalize(), [self[name] for name in self.fields])]


class IncidentForm(WrittenForm):
    """An incident, or planned maintenance, which has times instead of a status."""

    def __init__(self, data: QueryDict | None, page: StatusPage, *, planned: bool) -> None:
        names = {"components": [SimpleNamespace(name=each["name"]) for each in page.components]}
        super().__init__(data, IncidentSpec, names)
        self.noun = "maintenance" if planned else "incident"
        for name in ("impact", "status") if planned else _TIMES:
            del self.fields[f"/spec/{name}"]
        for name in _TIMES if planned else ():
            field = self.fields[f"/spec/{name}"]
            field.widget, field.required = forms.DateTimeInput(attrs={"type": "datetime-local"}), True
        if not planned:
            self._usual("status", "investigating")
            self._usual("impact", "degraded")

    def _usual(self, name: str, value: str) -> None:
        field = self.fields[f"/spec/{name}"]
        choices: Any = field.widget
        choices.choices = [each for each in choices.choices if each[0]]
        field.initial = value


class UpdateForm(WrittenForm):
    """What is told next; maintenance can only end before its time."""

    noun = "update"

    def __init__(self, data: QueryDict | None, row: Incident) -> None:
        super().__init__(data, UpdateSpec, {})
        status, impact = self.fields["/spec/status"], self.fields["/spec/impact"]
        widget: Any = status.widget
        if row.ends_at is not None:
            del self.fields["/spec/impact"]
            widget.choices = [("", "as planned"), (RESOLVED, "Completed")]
            return
        widget.choices = [each for each in widget.choices if each[0]]
        status.initial = row.status
        impacts: Any = impact.widget
        impacts.choices = [("", "as before"), *[each for each in impacts.choices if each[0]]]
        self.order_fields(["/spec/status", "/spec/impact", "/spec/text"])


def _component(line: str) -> dict[str, Any]:
    name, _, routes = line.rpartition("=") if "=" in line else (line, "", "")
    return {"name": name.strip(), "routes": [each.strip() for each in routes.split(",") if each.strip()]}


def _written(components: list[dict[str, Any]]) -> str:
    return "\n".join(f"{each['name']} = {', '.join(each['routes'])}" for each in components)
