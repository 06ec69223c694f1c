"""Forms of load balancers and their listeners; a listener is saved as a part of its load balancer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.definitions.models import Listener, LoadBalancer
from apps.definitions.previewing.capabilities import Standing, standings_of
from apps.definitions.reading.describing import describe
from apps.definitions.selectors import load_balancers, only
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.traffic.load_balancer import ListenerSpec
from apps.fleet import selectors as topology
from apps.web.capabilities.notes import LEADS, note_fields, path_of
from apps.web.kit.object_forms import ObjectForm, OperatorPages, Way, copied, show_form
from apps.web.kit.pages import PageRequest, onward, operators_only, page, post_page, show
from apps.web.kit.saving import Typed, confirmed, save, save_form, tell, telling
from apps.web.kit.shape_fields import LINES, offers, words
from apps.web.kit.shape_forms import DocumentForm, Group
from apps.web.load_balancers import connection_lines

NOUN = "load balancers"
# Blocks that do something even where all in them is as by default; the others are left out then.
SWITCHES = {
    "compression": "Compress responses",
    "cache": "Cache responses",
    "tracing": "Trace requests across services",
}
_NAME_SENT = re.compile(r"(/spec/listeners/[0-9]{1,4})/name")
TOLD = "Its nodes follow moments later."
# Lists of connections' ways, a line each: how they are written.
WAYS = {
    "sni_routes": "One per line: the hostname, then a tcp pool. With certificates, TLS is ended; write passthrough "
    "behind the pool to pass it on.",
    "protocol_routes": "One per line: ssh, http, tls, silent (nothing for five seconds) or alpn: and a protocol of "
    "ALPN, then a tcp pool.",
}


class LoadBalancerForm(ObjectForm):
    """Where it stands; its listeners have forms of their own."""

    kind, noun = "LoadBalancer", "load balancer"
    lead = "Clients connect to its listeners, which you add to the load balancer once it exists."

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: LoadBalancer | None) -> None:
        names = {"fleets": topology.fleets(actor), "stacks": topology.stacks(actor)}
        super().__init__(data, stored=stored, names=names)
        if not names["stacks"]:  # nothing to choose from
            del self.fields["/spec/stacks"]
            if stored is None and len(names["fleets"]) == 1:
                self.initial["/spec/fleets"] = names["fleets"][0].name


class ListenerForm(DocumentForm):
    """One listener: its port, what it serves, and in groups what it may be told beyond."""

    noun = "listener"

    def __init__(
        self,
        data: QueryDict | None,
        *,
        actor: Actor,
        document: dict[str, Any] | None,
        pointer: str,
        standings: Sequence[Standing],
    ) -> None:
        """`standings`: where its load balancer stands."""
        names = {"static_ip": topology.static_ips(actor)}
        super().__init__(data, shape=ListenerSpec, document=document, names=names, pointer=pointer)
        for name, choices in (("default_pool", "pools"), ("default_certificate", "certificates")):
            self.fields[f"{pointer}/{name}"].widget.attrs |= offers(choices)
        for name, hint in WAYS.items():
            self.fields[f"{pointer}/{name}"] = forms.CharField(
                **words(ListenerSpec, name) | {"help_text": hint}, widget=forms.Textarea(attrs=LINES)
            )
            self.initial[f"{pointer}/{name}"] = connection_lines.write((document or {}).get(name, []))
        for name, label in SWITCHES.items():
            self.fields[f"{pointer}/{name}"] = forms.BooleanField(label=label, required=False)
            self.initial[f"{pointer}/{name}"] = name in (document or {})
        protocol = f"{pointer}/protocol"
        self.fields[protocol].widget.attrs |= LEADS
        named = ((self[name], path_of(name)) for name in self.fields)
        tcp = self[protocol].value() == "tcp"
        self.capabilities = note_fields("LoadBalancer", named, standings, tcp=tcp, alone=True)

    def listener(self) -> dict[str, Any]:
        """The listener's document, without the blocks of which nothing is said."""
        found = self.document()
        blocks = {name: found.pop(name) for name in SWITCHES}
        on = {name: block for name, block in blocks.items() if self.cleaned_data[f"{self.pointer}/{name}"]}
        sent = {name: self.cleaned_data[f"{self.pointer}/{name}"] for name in WAYS}
        names = connection_lines.sni_routes(sent["sni_routes"])
        protocols = connection_lines.protocol_routes(sent["protocol_routes"])
        return {**self.without_defaults(found), **on, "sni_routes": names, "protocol_routes": protocols}

    @property
    def groups(self) -> list[Group]:
        """What every listener has, then a group for each block."""
        blocks = [field.name for field in fields_of(ListenerSpec) if field.child and not field.many]
        plain = [
            self[f"{self.pointer}/{field.name}"]
            for field in fields_of(ListenerSpec)
            if field.name not in blocks and f"{self.pointer}/{field.name}" in self.fields
        ]
        return [Group("Listener", plain), *map(self._block, blocks)]

    def _block(self, name: str) -> Group:
        group = self.folded(name)
        if f"{self.pointer}/{name}" not in self.fields:
            return group
        switch = self[f"{self.pointer}/{name}"]
        return Group(group.title, [switch, *group.fields], group.hint, folds=True, is_open=bool(switch.value()))


LOAD_BALANCERS = OperatorPages(
    LoadBalancerForm, load_balancers, NOUN, ("web:load-balancers", "Load balancers"), "web:load-balancer"
)


@page
def new_listener(request: PageRequest, pk: int) -> HttpResponse:
    """One more port of a load balancer."""
    operators_only(request.actor, NOUN)
    return _listener(request, only(load_balancers(request.actor), pk), None)


@page
def edit_listener(request: PageRequest, pk: int, listener: int) -> HttpResponse:
    """Change what a listener is told."""
    operators_only(request.actor, NOUN)
    balancer = only(load_balancers(request.actor), pk)
    return _listener(request, balancer, only(balancer.listeners.all(), listener))


def _listener(request: PageRequest, balancer: LoadBalancer, stored: Listener | None) -> HttpResponse:
    actor = request.actor
    actor.may_write()
    spec = describe(balancer)
    others = [each for each in spec["listeners"] if stored is None or each["name"] != stored.name]
    document = _said_of(spec, stored) if stored else _copied(request, balancer, spec)
    pointer = _pointer_sent(request) or f"/spec/listeners/{len(others)}"
    form = ListenerForm(
        request.POST or None, actor=actor, document=document, pointer=pointer, standings=standings_of(balancer.name)
    )

    def whole() -> dict[str, Any]:
        return {**spec, "listeners": [*others, form.listener()]}

    if request.method == "POST" and request.GET.get("partial"):
        return show(request, "pages/object_form.html", {"form": form})
    if save_form(request, form, "LoadBalancer", balancer, whole, lambda row: f"{row.name} is saved. {TOLD}"):
        return onward(request, "web:load-balancer", balancer.pk)
    crumbs = (
        (reverse("web:load-balancers"), "Load balancers"),
        (reverse("web:load-balancer", args=[balancer.pk]), balancer.name),
    )
    name = stored.name if stored else ""
    new = reverse("web:listener-new", args=[balancer.pk])
    copy = f"{new}?copy={stored.pk}" if stored else ""
    return show_form(request, form, Way(crumbs, ""), stored=balancer, name=name, copy=copy)


def _said_of(spec: dict[str, Any], row: Listener) -> dict[str, Any]:
    return next(each for each in spec["listeners"] if each["name"] == row.name)


def _copied(request: PageRequest, balancer: LoadBalancer, spec: dict[str, Any]) -> dict[str, Any] | None:
    """What a copy says of the other: all but its name, and its port, which no two listeners share."""
    source: Listener | None = copied(request, balancer.listeners.all())
    return _said_of(spec, source) | {"name": None, "port": None} if source else None


def _pointer_sent(request: PageRequest) -> str:
    """Where the listener stood when its form was shown: what was typed is shown again, whoever saved meanwhile."""
    found = (_NAME_SENT.fullmatch(key) for key in request.POST)
    return next((each[1] for each in found if each), "")


@post_page
def delete_listener(request: PageRequest, pk: int, listener: int) -> HttpResponse:
    """Take a port away, once the listener's name was typed; clients can no longer connect to it."""
    operators_only(request.actor, NOUN)
    request.actor.may_write()
    balancer = only(load_balancers(request.actor), pk)
    row = only(balancer.listeners.all(), listener)
    if confirmed(request, row.name):
        spec = describe(balancer)
        spec["listeners"] = [each for each in spec["listeners"] if each["name"] != row.name]
        typed = Typed(kind="LoadBalancer", row=balancer, spec=spec, version=balancer.version)
        with telling(request):
            tell(request, typed, save(request, typed), f"Listener {row.name} is deleted. {TOLD}")
    return redirect("web:load-balancer", pk)
