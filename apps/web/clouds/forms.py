"""Forms of cloud accounts, stacks, address pools and static IPs: what the documents of those kinds say, typed in."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.definitions.selectors import only
from apps.fleet import selectors as topology
from apps.web.kit.object_forms import ObjectForm, Way, edit_object
from apps.web.kit.pages import PageRequest, operators_only, page

BACK = {"web:stacks": "Stacks", "web:cloud-accounts": "Cloud accounts", "web:static-ips": "Static IPs"}


class CloudForm(ObjectForm):
    """What the forms here share: locations are chosen by name."""

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        names = {
            "cloud_account": topology.cloud_accounts(actor),
            "region": topology.regions(actor),
            "pool": topology.address_pools(actor),
            "stack": topology.stacks(actor),
            "owner": accounts(actor),
        }
        super().__init__(data, stored=stored, names=names)


class CloudAccountForm(CloudForm):
    """An account at a cloud, by reference to its credentials."""

    kind, noun = "CloudAccount", "cloud account"


class StackForm(CloudForm):
    """One cloud account in one of its regions."""

    kind, noun = "Stack", "stack"


class AddressPoolForm(CloudForm):
    """Blocks that static IPs are allotted from."""

    kind, noun = "AddressPool", "address pool"


class StaticIPForm(CloudForm):
    """An address that stays."""

    kind, noun = "StaticIP", "static IP"


def _edit(request: PageRequest, form_class: type[CloudForm], stored: Any, back: str, to: str) -> HttpResponse:
    request.actor.may_write()
    form = form_class(request.POST or None, actor=request.actor, stored=stored)
    return edit_object(request, form, Way.of(back, BACK[back], to if to != back else ""))


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
