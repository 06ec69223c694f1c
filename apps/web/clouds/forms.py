"""Forms of cloud accounts, stacks, address pools and static IPs: what the documents of those kinds say, typed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.definitions.shapes.clouds.cloud_account import CLOUDS
from apps.definitions.shapes.clouds.static_ip import OF_CLOUDS, OF_FLEETS
from apps.fleet import selectors as topology
from apps.web.kit.object_forms import ObjectForm, OperatorPages
from apps.web.kit.shape_fields import LINES, offers

NAMES: Mapping[str, str] = {cloud.value: name for cloud, name in CLOUDS.items()}
AWS, GOOGLE = NAMES
# What a question to the cloud needs of the other fields.
_ASKED = ("cloud_account", "cloud_region", "network/vpc", "network/subnets", "network/vpc_networks")
OFFERED_BY_CLOUD = {"cloud_region": "cloud-regions", "network/vpc": "networks", "network/log_bucket": "buckets"}
OF_THE_FORM = {"hx-include": ", ".join(f"[name='/spec/{name}']" for name in _ASKED)}


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
    only: ClassVar = {"/spec/project": GOOGLE}


class Accounts(forms.Select):
    """Cloud accounts, each with its cloud, which says what fields its stack has."""

    clouds: Mapping[str, str]

    def create_option(self, name: str, value: Any, label: Any, *rest: Any, **more: Any) -> dict[str, Any]:
        """An account, with the name of its cloud."""
        cloud = self.clouds.get(str(value), "")
        words = f"{label} ({NAMES[cloud]})" if cloud else label
        option: dict[str, Any] = super().create_option(name, value, words, *rest, **more)
        option["attrs"] |= {"data-cloud": cloud} if cloud else {}
        return option


class AddedLines(forms.Textarea):
    """Lines to which names are added that the cloud says."""

    template_name = "django/forms/widgets/added_lines.html"

    def __init__(self, kind: str, label: str) -> None:
        super().__init__(LINES)
        self.adding = offers(kind) | OF_THE_FORM | {"placeholder": "Add from the cloud", "aria-label": label}

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """With the field below the lines."""
        context: dict[str, Any] = super().get_context(name, value, attrs)
        context["widget"]["adding"] = self.adding
        return context


class StackForm(CloudForm):
    """One cloud account in one of its regions."""

    kind, noun = "Stack", "stack"
    only: ClassVar = {
        "/spec/network/subnets": AWS,
        "/spec/network/vpc_networks": AWS,
        "/spec/network/log_bucket": AWS,
        "/spec/network/zones": GOOGLE,
    }

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        super().__init__(data, actor=actor, stored=stored)
        field = self.fields["/spec/cloud_account"]
        plain: Any = field.widget
        field.widget = Accounts(choices=plain.choices)
        for name, said in OFFERED_BY_CLOUD.items():
            self.fields[f"/spec/{name}"].widget.attrs |= offers(said) | OF_THE_FORM
        self.fields["/spec/network/subnets"].widget = AddedLines("subnets", "Add a subnet from the cloud")
        self.fields["/spec/network/vpc_networks"].widget = AddedLines("blocks", "Add a network from the cloud")
        field.widget.clouds = dict(topology.cloud_accounts(actor).values_list("name", "cloud"))


class AddressPoolForm(CloudForm):
    """Blocks that static IPs are allotted from."""

    kind, noun = "AddressPool", "address pool"


class StaticIPForm(CloudForm):
    """An address that stays."""

    kind, noun = "StaticIP", "static IP"
    only: ClassVar = {f"/spec/{field}": " ".join(OF_FLEETS) for field in ("address", "region", "pool")} | {
        "/spec/stack": " ".join(OF_CLOUDS)
    }

    def __init__(self, data: QueryDict | None, *, actor: Actor, stored: Any) -> None:
        super().__init__(data, actor=actor, stored=stored)
        names = ("owner", "kind", "region", "pool", "address", "stack")
        self.order_fields([f"/spec/{names[0]}", "/name", *(f"/spec/{name}" for name in names[1:])])


_ACCOUNTS, _STACKS, _ADDRESSES = (
    ("web:cloud-accounts", "Cloud accounts"),
    ("web:stacks", "Stacks"),
    ("web:static-ips", "Static IPs"),
)
CLOUD_ACCOUNTS = OperatorPages(CloudAccountForm, topology.cloud_accounts, "cloud accounts", _ACCOUNTS)
STACKS = OperatorPages(StackForm, topology.stacks, "stacks", _STACKS, "web:stack")
ADDRESS_POOLS = OperatorPages(AddressPoolForm, topology.address_pools, "address pools", _ADDRESSES)
STATIC_IPS = OperatorPages(StaticIPForm, topology.static_ips, "static IPs", _ADDRESSES, "web:static-ip")
