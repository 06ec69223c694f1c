"""Forms of cloud accounts, stacks, address pools and static IPs; the services check everything."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.definitions.selectors import only
from apps.fleet import selectors as topology
from apps.web.kit.pages import PageRequest, operators_only, page, show
from apps.web.kit.saving import save_form, version_shown
from apps.web.kit.shape_forms import ShapeForm

BACK = {"web:stacks": "Stacks", "web:cloud-accounts": "Cloud accounts", "web:static-ips": "Static IPs"}


class ObjectForm(ShapeForm):
    """What the forms here share: locations are chosen by name, and the network stands in a group of its own."""

    noun = ""

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        names = {
            "cloud_account": topology.cloud_accounts(actor),
            "region": topology.regions(actor),
            "pool": topology.address_pools(actor),
            "stack": topology.stacks(actor),
            "owner": accounts(actor),
        }
        super().__init__(data, stored=stored, names=names)

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        own = [self[name] for name in self.fields if "/network/" not in name]
        network = [self[name] for name in self.fields if "/network/" in name]
        found = [(f"{self.noun[0].upper()}{self.noun[1:]}", own)]
        return [*found, ("Network", network)] if network else found


class CloudAccountForm(ObjectForm):
    """An account at a cloud, by reference to its credentials."""

    kind, noun = "CloudAccount", "cloud account"


class StackForm(ObjectForm):
    """One cloud account in one of its regions."""

    kind, noun = "Stack", "stack"


class AddressPoolForm(ObjectForm):
    """Blocks that static IPs are allotted from."""

    kind, noun = "AddressPool", "address pool"


class StaticIPForm(ObjectForm):
    """An address that stays."""

    kind, noun = "StaticIP", "static IP"


def _edit(request: PageRequest, form_class: Any, stored: Any, back: str, to: str) -> HttpResponse:
    """Show the form, or store what was typed and go on."""
    request.actor.may_write()
    form: ObjectForm = form_class(request.POST or None, actor=request.actor, stored=stored)
    noun = f"{form.noun[0].upper()}{form.noun[1:]}"
    if saved := save_form(request, form, form.kind, stored, form.spec, lambda row: f"{noun} {row.name} is saved."):
        return redirect(to, saved.pk) if to != back else redirect(to)
    words = BACK[back]
    context = {
        "form": form,
        "stored": stored,
        "back": back,
        "back_words": words,
        "version": version_shown(request, stored),
    }
    return show(request, "pages/clouds/form.html", context, status=422 if form.is_bound else 200)


@page
def new_cloud_account(request: PageRequest) -> HttpResponse:
    """Name an account at a cloud."""
    operators_only(request.actor, "cloud accounts")
    return _edit(request, CloudAccountForm, None, "web:cloud-accounts", "web:cloud-accounts")


@page
def edit_cloud_account(request: PageRequest, pk: int) -> HttpResponse:
    """Change how an account at a cloud is reached."""
    operators_only(request.actor, "cloud accounts")
    stored = only(topology.cloud_accounts(request.actor), pk)
    return _edit(request, CloudAccountForm, stored, "web:cloud-accounts", "web:cloud-accounts")


@page
def new_stack(request: PageRequest) -> HttpResponse:
    """Name a region of a cloud account."""
    operators_only(request.actor, "stacks")
    return _edit(request, StackForm, None, "web:stacks", "web:stack")


@page
def edit_stack(request: PageRequest, pk: int) -> HttpResponse:
    """Change the network of a stack, and who approves its plans."""
    operators_only(request.actor, "stacks")
    return _edit(request, StackForm, only(topology.stacks(request.actor), pk), "web:stacks", "web:stack")


@page
def new_address_pool(request: PageRequest) -> HttpResponse:
    """Name blocks that addresses are allotted from."""
    operators_only(request.actor, "address pools")
    return _edit(request, AddressPoolForm, None, "web:static-ips", "web:static-ips")


@page
def edit_address_pool(request: PageRequest, pk: int) -> HttpResponse:
    """Change the blocks of a pool."""
    operators_only(request.actor, "address pools")
    stored = only(topology.address_pools(request.actor), pk)
    return _edit(request, AddressPoolForm, stored, "web:static-ips", "web:static-ips")


@page
def new_static_ip(request: PageRequest) -> HttpResponse:
    """Take an address."""
    operators_only(request.actor, "static IPs")
    return _edit(request, StaticIPForm, None, "web:static-ips", "web:static-ip")


@page
def edit_static_ip(request: PageRequest, pk: int) -> HttpResponse:
    """Change whom an address was given to, and its protection."""
    operators_only(request.actor, "static IPs")
    return _edit(request, StaticIPForm, only(topology.static_ips(request.actor), pk), "web:static-ips", "web:static-ip")
