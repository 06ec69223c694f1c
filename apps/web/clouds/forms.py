"""Forms of cloud accounts, stacks, address pools and static IPs: what the documents of those kinds say, typed in."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.fleet import selectors as topology
from apps.web.kit.object_forms import ObjectForm, OperatorPages


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


_ACCOUNTS, _STACKS, _ADDRESSES = (
    ("web:cloud-accounts", "Cloud accounts"),
    ("web:stacks", "Stacks"),
    ("web:static-ips", "Static IPs"),
)
CLOUD_ACCOUNTS = OperatorPages(CloudAccountForm, topology.cloud_accounts, "cloud accounts", _ACCOUNTS)
STACKS = OperatorPages(StackForm, topology.stacks, "stacks", _STACKS, "web:stack")
ADDRESS_POOLS = OperatorPages(AddressPoolForm, topology.address_pools, "address pools", _ADDRESSES)
STATIC_IPS = OperatorPages(StaticIPForm, topology.static_ips, "static IPs", _ADDRESSES, "web:static-ip")
