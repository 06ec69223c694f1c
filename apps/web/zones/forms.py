"""DEFINE by people: forms of DNS zones and records; the services judge everything, faults stand beside the fields."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions.models import LoadBalancer, Record, Zone
from apps.definitions.reading.zones import ALGORITHMS
from apps.definitions.selectors import load_balancers, only
from apps.definitions.selectors import records as visible_records
from apps.definitions.selectors import zones as visible_zones
from apps.definitions.shapes.base.words import as_texts
from apps.dns.selectors import zone_for
from apps.fleet.selectors import stacks, static_ips
from apps.web.kit.field_errors import blame
from apps.web.kit.pages import PageRequest, operators_only, page, show
from apps.web.kit.saving import Typed, saved_or_blamed, tell, version_sent, version_shown

NAME_HINT = "Lowercase letters, digits and hyphens. Used in the API."
DRIVERS = (
    ("rfc2136", "RFC 2136 with TSIG (BIND, Knot, Windows …)"),
    ("powerdns", "PowerDNS by its API"),
    ("route53", "Route 53, managed by a stack"),
)
TYPES = ("A", "AAAA", "CNAME", "TXT", "MX", "SRV", "CAA", "NS")
SOURCES = (("values", "These values"), ("static_ip", "A static IP"), ("load_balancer", "A load balancer"))
LINES = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"})


class ZoneForm(forms.Form):
    """A zone and who serves it."""

    use_required_attribute = False

    def __init__(self, *args: Any, stored: Zone | None, stack_names: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if stored is None:
            self.fields["/name"] = forms.CharField(label="Name", max_length=63, help_text=NAME_HINT)
        self.fields["/spec/domain"] = forms.CharField(label="Domain", help_text="example.com, without a final dot.")
        self.fields["/spec/driver"] = forms.ChoiceField(label="Written by", choices=DRIVERS)
        self.fields["/spec/server"] = forms.CharField(
            label="Server", required=False, help_text="address:port for RFC 2136, the URL of the API for PowerDNS."
        )
        self.fields["/spec/key_name"] = forms.CharField(
            label="TSIG key", required=False, help_text="The name of the TSIG key."
        )
        self.fields["/spec/key_algorithm"] = forms.ChoiceField(
            label="TSIG algorithm", choices=[(each, each) for each in ALGORITHMS], required=False
        )
        self.fields["/spec/credentials"] = forms.CharField(
            label="Secret",
            required=False,
            help_text="A reference, never a secret: env:EXAMPLE reads SPILLWAY_DNS_EXAMPLE "
            "from the workers' environment. It is used "
            "only for servers listed in SPILLWAY_DNS_EXAMPLE_SERVERS.",
        )
        choices = [("", "none"), *((name, name) for name in stack_names)]
        self.fields["/spec/stack"] = forms.ChoiceField(label="Stack", choices=choices, required=False)
        self.fields["/spec/resolvers"] = forms.CharField(
            label="Resolvers",
            required=False,
            widget=LINES,
            help_text="One per line. Spillway asks these resolvers what is actually served.",
        )
        self.fields["/spec/tags"] = _tags_field("A grant for a tag lets a customer create records in the zone.")

    def spec(self) -> dict[str, Any]:
        """The document's specification; what is empty is left out."""
        found = {name: self.cleaned_data[f"/spec/{name}"] for name in ("domain", "driver")}
        for name in ("server", "key_name", "key_algorithm", "credentials", "stack"):
            if text := self.cleaned_data.get(f"/spec/{name}", "").strip():
                found[name] = text
        found["resolvers"] = lines(self.cleaned_data.get("/spec/resolvers", ""))
        found["tags"] = _tags(self.cleaned_data)
        return found

    @staticmethod
    def typed_of(zone: Zone) -> dict[str, Any]:
        """What the form shows of a stored zone."""
        return {
            "/spec/domain": zone.domain,
            "/spec/driver": zone.driver,
            "/spec/server": zone.server,
            "/spec/key_name": zone.key_name,
            "/spec/key_algorithm": zone.key_algorithm,
            "/spec/credentials": zone.credentials,
            "/spec/stack": zone.stack.name if zone.stack else "",
            "/spec/resolvers": "\n".join(zone.resolvers),
            "/spec/tags": "\n".join(as_texts(zone.tags)),
        }


class RecordForm(forms.Form):
    """One set of records of a zone; only those of the zone's own account have tags."""

    use_required_attribute = False

    def __init__(self, *args: Any, request: PageRequest, stored: Record | None, tagged: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["/spec/label"] = forms.CharField(
            label="Name", help_text="Below the domain: www, *.api, or @ for the domain itself."
        )
        self.fields["/spec/type"] = forms.ChoiceField(label="Type", choices=[(each, each) for each in TYPES])
        self.fields["/spec/ttl"] = forms.IntegerField(label="TTL", initial=300, help_text="Seconds.")
        self.fields["source"] = forms.ChoiceField(label="Answers with", choices=SOURCES, initial="values")
        self.fields["/spec/values"] = forms.CharField(
            label="Values", required=False, widget=LINES, help_text="One per line, as in a zone file."
        )
        addresses = [row.name for row in static_ips(request.actor)]
        balancers = [row.name for row in _balancers(request)]
        for field, label, names in (
            ("static_ip", "Static IP", addresses),
            ("load_balancer", "Load balancer", balancers),
        ):
            choices = [("", "none"), *((name, name) for name in names)]
            self.fields[f"/spec/{field}"] = forms.ChoiceField(label=label, choices=choices, required=False)
        if tagged:
            self.fields["/spec/tags"] = _tags_field("Your own labels.")
        if stored is None:
            self.fields["/name"] = forms.CharField(
                label="Object name", required=False, max_length=63, help_text="Default: built from name and type."
            )

    def spec(self, zone: str) -> dict[str, Any]:
        """The document's specification: one source of what is served, the others left out."""
        found = {name: self.cleaned_data[f"/spec/{name}"] for name in ("label", "type", "ttl")}
        source = self.cleaned_data["source"]
        text = self.cleaned_data.get(f"/spec/{source}", "")
        served = lines(text) if source == "values" else text
        return {"zone": zone, **found, source: served, "tags": _tags(self.cleaned_data)}

    @staticmethod
    def typed_of(record: Record) -> dict[str, Any]:
        """What the form shows of a stored record."""
        source = "static_ip" if record.static_ip else "load_balancer" if record.load_balancer else "values"
        return {
            "/spec/label": record.label,
            "/spec/type": record.type,
            "/spec/ttl": record.ttl,
            "source": source,
            "/spec/values": "\n".join(record.values),
            "/spec/static_ip": record.static_ip.name if record.static_ip else "",
            "/spec/load_balancer": record.load_balancer.name if record.load_balancer else "",
            "/spec/tags": "\n".join(as_texts(record.tags)),
        }


def lines(text: str) -> list[str]:
    """The lines that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _tags_field(use: str) -> forms.CharField:
    return forms.CharField(label="Tags", required=False, widget=LINES, help_text=f"key=value, one per line. {use}")


def _tags(cleaned: dict[str, Any]) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines(cleaned.get("/spec/tags", "")))
    return {key.strip(): value.strip() for key, _, value in pairs}


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
    names = [row.name for row in stacks(request.actor)]
    initial = ZoneForm.typed_of(stored) if stored else {}
    form = ZoneForm(request.POST or None, stored=stored, stack_names=names, initial=initial)
    if form.is_bound and form.is_valid():
        typed = Typed(
            kind="Zone",
            row=stored,
            name=form.cleaned_data.get("/name", ""),
            spec=form.spec(),
            version=version_sent(request) if stored else None,
        )
        if saved := saved_or_blamed(request, typed, lambda error: blame(form, error)):
            tell(request, typed, saved, f"Zone {saved.domain} is managed here. Its records are being written.")
            return redirect("web:zone", saved.pk)
    context = {"form": form, "stored": stored, "version": version_shown(request, stored)}
    return show(request, "pages/zones/form.html", context, status=422 if form.is_bound else 200)


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
    initial = RecordForm.typed_of(stored) if stored else {}
    owner_id = stored.account_id if stored else request.actor.account.pk
    tagged = zone.account_id == owner_id
    form = RecordForm(request.POST or None, request=request, stored=stored, tagged=tagged, initial=initial)
    if form.is_bound and form.is_valid():
        typed = Typed(
            kind="Record",
            row=stored,
            name=form.cleaned_data.get("/name") or _slug(form.cleaned_data, zone),
            spec=form.spec(_reference(owner_id, zone)),
            version=version_sent(request) if stored else None,
        )
        if saved := saved_or_blamed(request, typed, lambda error: blame(form, error)):
            tell(request, typed, saved, f"{saved.label} {saved.type} is saved. The name server has it in a moment.")
            return redirect("web:zone", zone.pk)
    context = {"form": form, "stored": stored, "zone": zone, "version": version_shown(request, stored)}
    return show(request, "pages/zones/record_form.html", context, status=422 if form.is_bound else 200)


def _reference(owner_id: int, zone: Zone) -> str:
    """How the account that owns the record names the zone."""
    return zone.name if zone.account_id == owner_id else f"{zone.account.name}/{zone.name}"


def _slug(found: dict[str, Any], zone: Zone) -> str:
    """`www`, A in `example` → `example-www-a`."""
    label = {"@": "apex"}.get(found["/spec/label"], found["/spec/label"])
    words = f"{zone.name}-{label}-{found['/spec/type']}".lower().replace("*", "any")
    return "".join(each if each.isalnum() else "-" for each in words).strip("-")[:63].rstrip("-")
