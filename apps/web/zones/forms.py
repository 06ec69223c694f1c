"""Forms of DNS zones and records; the services check everything, errors stand beside the fields."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.definitions.models import LoadBalancer, Record, Zone
from apps.definitions.selectors import load_balancers, only
from apps.definitions.selectors import records as visible_records
from apps.definitions.selectors import zones as visible_zones
from apps.definitions.shapes.base.writing import reference
from apps.definitions.shapes.traffic.zone import NEEDS, OF_DRIVERS, TAKES
from apps.dns.selectors import zone_for
from apps.fleet.selectors import stacks, static_ips
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, operators_only, page, show
from apps.web.kit.saving import Typed, save, save_form, tell, version_sent, version_shown
from apps.web.kit.shape_forms import ShapeForm
from apps.web.zones.testing import tested_form

SOURCES = (("values", "These values"), ("static_ip", "A static IP"), ("load_balancer", "A load balancer"))


class ZoneForm(ShapeForm):
    """A zone and who serves it."""

    kind = "Zone"
    only: ClassVar = {
        f"/spec/{field}": " ".join(driver for driver in NEEDS if field in (*NEEDS[driver], *TAKES.get(driver, ())))
        for field in OF_DRIVERS
    }


class RecordForm(ShapeForm):
    """One set of records of a zone, one source of what is served; tags for those of the zone's own account."""

    kind = "Record"

    def __init__(self, data: QueryDict | None, *, stored: Record | None, tagged: bool, names: Any) -> None:
        super().__init__(data, stored=stored, names=names)
        source = next((name for name, _ in SOURCES if stored and getattr(stored, name)), "values")
        self.fields["source"] = forms.ChoiceField(label="Answers with", choices=SOURCES, initial=source)
        if not tagged:
            del self.fields["/spec/tags"]
        if name := self.fields.get("/name"):
            name.label, name.required, name.help_text = "Object name", False, "Default: built from name and type."
        self.order_fields(["/spec/label", "/spec/type", "/spec/ttl", "source"])

    def spec(self) -> dict[str, Any]:
        """The document of what was typed, without the sources that were not chosen."""
        left_out = {name for name, _ in SOURCES} - {self.cleaned_data["source"]}
        return {name: value for name, value in super().spec().items() if name not in left_out}


def _balancers(request: PageRequest) -> list[LoadBalancer]:
    return list(load_balancers(request.actor)[:500]) if request.actor.is_operator else []


@page
def new_zone(request: PageRequest) -> HttpResponse:
    """A zone that operators keep."""
    return _zone(request, None)


@page
def edit_zone(request: PageRequest, pk: int) -> HttpResponse:
    """Change where a zone is served, who is asked, and its tags."""
    operators_only(request.actor, "edit of zones")
    return _zone(request, only(visible_zones(request.actor), pk))


def _zone(request: PageRequest, stored: Zone | None) -> HttpResponse:
    operators_only(request.actor, "zones")
    request.actor.may_write()
    form_of = partial(ZoneForm, names={"stack": stacks(request.actor)})
    form = form_for(request, stored, visible_zones(request.actor), form_of)
    tested = tested_form(request, form) if "test" in request.POST else {}
    if "test" not in request.POST and (saved := save_form(request, form, "Zone", stored, form.spec, _saved)):
        return redirect("web:zone", saved.pk)
    context = {"form": form, "stored": stored, "version": version_shown(request, stored), "tested": tested}
    return show(request, "pages/zones/form.html", context, status=422 if form.is_bound and not tested else 200)


def _saved(row: Zone) -> str:
    return f"Zone {row.domain} is managed here. Its records are being written."


@page
def new_record(request: PageRequest, pk: int) -> HttpResponse:
    """A record of the actor's own in a zone that it sees."""
    return _record(request, zone_for(request.actor, pk), None)


@page
def edit_record(request: PageRequest, pk: int) -> HttpResponse:
    """Change what a record says."""
    stored = only(visible_records(request.actor), pk)
    return _record(request, zone_for(request.actor, stored.zone_id), stored)


def _record(request: PageRequest, zone: Zone, stored: Record | None) -> HttpResponse:
    request.actor.may_write()
    owner_id = stored.account_id if stored else request.actor.account.pk
    tagged = zone.account_id == owner_id
    names = {"static_ip": static_ips(request.actor), "load_balancer": _balancers(request)}
    own = visible_records(request.actor).filter(zone=zone)
    form = form_for(request, stored, own, partial(RecordForm, tagged=tagged, names=names))
    if form.is_bound and form.is_valid():
        typed = Typed(
            kind="Record",
            row=stored,
            name=form.cleaned_data.get("/name") or _slug(form.cleaned_data, zone),
            spec=form.spec() | {"zone": reference(zone, owner_id)},
            version=version_sent(request) if stored else None,
        )
        with refusals_in(form):
            saved = save(request, typed)
            tell(request, typed, saved, f"{saved.label} {saved.type} is saved. The name server has it in a moment.")
            return redirect("web:zone", zone.pk)
    context = {"form": form, "stored": stored, "zone": zone, "version": version_shown(request, stored)}
    return show(request, "pages/zones/record_form.html", context, status=422 if form.is_bound else 200)


def _slug(found: dict[str, Any], zone: Zone) -> str:
    """`www`, A in `example` → `example-www-a`."""
    label = {"@": "apex"}.get(found["/spec/label"], found["/spec/label"])
    words = f"{zone.name}-{label}-{found['/spec/type']}".lower().replace("*", "any")
    return "".join(each if each.isalnum() else "-" for each in words).strip("-")[:63].rstrip("-")
