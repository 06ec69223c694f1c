"""Forms of cloud accounts, stacks, address pools and static IPs; the services judge everything."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.definitions.selectors import only
from apps.fleet import selectors as places
from apps.fleet.models import AddressPool, CloudAccount, Stack, StaticIP
from apps.web.kit.field_errors import attach_errors
from apps.web.kit.pages import PageRequest, operators_only, page, show
from apps.web.kit.saving import Typed, save_or_attach_errors, tell, version_sent, version_shown

NAME_HINT = "Lowercase letters, digits and hyphens. Used in the API."
CLOUDS = (("aws", "AWS"), ("google", "Google"))
APPROVALS = (
    ("by_hand", "Every plan needs approval"),
    ("automatic_safe", "Plans that delete or replace resources need approval"),
    ("automatic", "No plan needs approval"),
)
KINDS = (
    ("node", "Routed: bound on each node of a fleet"),
    ("vip", "VIP: VRRP moves it among the nodes of a fleet"),
    ("anycast", "Anycast: every healthy node announces it by BGP"),
    ("elastic", "AWS: Elastic IPs"),
    ("accelerator", "AWS: Global Accelerator"),
    ("google", "Google: a global address"),
)
LINES = {"rows": 3, "spellcheck": "false", "class": "mono"}
NOTHING = ("", "none")
BACK = {"web:stacks": "Stacks", "web:cloud-accounts": "Cloud accounts", "web:static-ips": "Static IPs"}


class ObjectForm(forms.Form):
    """What the forms here share: fields are named by pointers into the document, empty ones are left out of it."""

    use_required_attribute = False
    kind = ""
    noun = ""

    def __init__(self, *args: Any, actor: Actor, stored: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if stored is None:
            self.fields["/name"] = forms.CharField(label="Name", max_length=63, help_text=NAME_HINT)
        self.build(actor)

    def build(self, actor: Actor) -> None:
        """Add the fields of the kind."""
        raise NotImplementedError

    def text(self, field: str, label: str, hint: str = "", *, required: bool = False) -> None:
        """One line."""
        self.fields[f"/spec/{field}"] = forms.CharField(label=label, required=required, help_text=hint)

    def lines(self, field: str, label: str, hint: str) -> None:
        """Several values, one a line."""
        widget = forms.Textarea(attrs=LINES)
        self.fields[f"/spec/{field}"] = forms.CharField(label=label, required=False, widget=widget, help_text=hint)

    def choice(self, field: str, label: str, choices: Any, hint: str = "", *, required: bool = False) -> None:
        """One of several."""
        found = forms.ChoiceField(label=label, choices=list(choices), required=required, help_text=hint)
        self.fields[f"/spec/{field}"] = found

    @property
    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The fields by heading."""
        own = [self[name] for name in self.fields if "/network/" not in name]
        network = [self[name] for name in self.fields if "/network/" in name]
        found = [(f"{self.noun[0].upper()}{self.noun[1:]}", own)]
        return [*found, ("Network", network)] if network else found

    def given(self, *fields: str) -> dict[str, Any]:
        """The fields that say something, as a document has them."""
        texts = {field: str(self.cleaned_data.get(f"/spec/{field}") or "").strip() for field in fields}
        return {field: text for field, text in texts.items() if text}

    def listed(self, field: str) -> list[str]:
        """The lines of a field that say something."""
        return [line.strip() for line in str(self.cleaned_data.get(f"/spec/{field}", "")).splitlines() if line.strip()]

    def spec(self) -> dict[str, Any]:
        """The document's specification."""
        raise NotImplementedError


def _named(rows: Any) -> list[tuple[str, str]]:
    return [NOTHING, *((row.name, row.name) for row in rows)]


class CloudAccountForm(ObjectForm):
    """An account at a cloud, by reference to its credentials."""

    kind, noun = "CloudAccount", "cloud account"

    def build(self, actor: Actor) -> None:  # noqa: ARG002 - as the others
        """Cloud, credentials, project, endpoint."""
        self.choice("cloud", "Cloud", CLOUDS, required=True)
        self.text(
            "credentials",
            "Credentials",
            "A reference, never a secret: env:PROD reads SPILLWAY_CLOUD_PROD_… from the workers' environment; "
            "profile:NAME; role:ARN. "
            "Default: the identity of the machine.",
        )
        self.text("project", "Project", "Google only.")
        self.text(
            "endpoint_url",
            "Endpoint",
            "Only for private clouds and tests: a different API URL. Set the same URL in the workers' "
            "environment, in SPILLWAY_CLOUD_PROD_ENDPOINT for env:PROD.",
        )

    def spec(self) -> dict[str, Any]:
        """The document's specification."""
        return self.given("cloud", "credentials", "project", "endpoint_url")

    @staticmethod
    def typed_of(row: CloudAccount) -> dict[str, Any]:
        """What the form shows of a stored one."""
        return {f"/spec/{name}": getattr(row, name) for name in ("cloud", "credentials", "project", "endpoint_url")}


class StackForm(ObjectForm):
    """One cloud account in one of its regions."""

    kind, noun = "Stack", "stack"

    def build(self, actor: Actor) -> None:
        """Account and region, network, approval."""
        self.choice("cloud_account", "Cloud account", _named(places.cloud_accounts(actor)), required=True)
        self.text("cloud_region", "The cloud's region", "eu-central-1; global on Google.", required=True)
        hint = "The Spillway region. Leave empty if the stack serves all regions."
        self.choice("region", "Region", _named(places.regions(actor)), hint)
        self.choice(
            "approval", "Approval", APPROVALS, "Plans that only change weights never need approval.", required=True
        )
        self.text("network/vpc", "Network", "AWS: the VPC ID. Google: the network name or self link.")
        self.lines("network/subnets", "Subnets", "AWS: one ID per line; at least two, in different zones.")
        self.lines(
            "network/client_networks", "Clients", "CIDR blocks that may connect, one per line. Default: everyone."
        )
        self.lines(
            "network/vpc_networks",
            "Networks of the VPC",
            "CIDR blocks, one per line. Servers outside these blocks count as external.",
        )
        self.text("network/log_bucket", "Bucket for access logs", "Leave empty for no access logs.")
        self.lines("network/zones", "Zones", "Google: region=zone, one per line; where endpoints are registered.")

    def spec(self) -> dict[str, Any]:
        """The document's specification."""
        network = {
            name.partition("/")[2]: text for name, text in self.given("network/vpc", "network/log_bucket").items()
        }
        lists = {name: self.listed(f"network/{name}") for name in ("subnets", "client_networks", "vpc_networks")}
        zones = {
            key.strip(): zone.strip() for key, _, zone in (line.partition("=") for line in self.listed("network/zones"))
        }
        found = {
            **network,
            **{name: lines for name, lines in lists.items() if lines},
            **({"zones": zones} if zones else {}),
        }
        return {**self.given("cloud_account", "cloud_region", "region", "approval"), "network": found}

    @staticmethod
    def typed_of(row: Stack) -> dict[str, Any]:
        """What the form shows of a stored one."""
        network = row.network
        lists = ("subnets", "client_networks", "vpc_networks")
        return {
            "/spec/cloud_account": row.cloud_account.name,
            "/spec/cloud_region": row.cloud_region,
            "/spec/region": row.region.name if row.region else "",
            "/spec/approval": row.approval,
            "/spec/network/vpc": network.get("vpc", ""),
            "/spec/network/log_bucket": network.get("log_bucket", ""),
            "/spec/network/zones": "\n".join(f"{key}={zone}" for key, zone in sorted(network.get("zones", {}).items())),
            **{f"/spec/network/{name}": "\n".join(network.get(name, ())) for name in lists},
        }


class AddressPoolForm(ObjectForm):
    """Blocks that static IPs are allotted from."""

    kind, noun = "AddressPool", "address pool"

    def build(self, actor: Actor) -> None:
        """Blocks and region."""
        self.lines("blocks", "Networks", "CIDR blocks, one per line.")
        self.choice("region", "Region", _named(places.regions(actor)), "Leave empty for addresses in any region.")

    def spec(self) -> dict[str, Any]:
        """The document's specification."""
        return {"blocks": self.listed("blocks"), **self.given("region")}

    @staticmethod
    def typed_of(row: AddressPool) -> dict[str, Any]:
        """What the form shows of a stored one."""
        return {"/spec/blocks": "\n".join(row.blocks), "/spec/region": row.region.name if row.region else ""}


class StaticIPForm(ObjectForm):
    """An address that stays."""

    kind, noun = "StaticIP", "static IP"

    def build(self, actor: Actor) -> None:
        """Kind, address or pool or stack, owner, protection."""
        self.choice("kind", "Kind", KINDS, required=True)
        self.text(
            "address",
            "Address",
            "For fleets only. Default: the lowest free address in the pool. A cloud allocates its own address.",
        )
        self.choice("pool", "Address pool", _named(places.address_pools(actor)))
        self.choice(
            "region",
            "Region",
            _named(places.regions(actor)),
            "Leave empty for an address that is announced everywhere.",
        )
        self.choice("stack", "Stack", _named(places.stacks(actor)), "For cloud addresses only.")
        self.choice("owner", "Assigned to", _named(accounts(actor)))
        self.fields["/spec/protected"] = forms.BooleanField(
            label="Protected", required=False, help_text="It cannot be deleted, and no plan releases it."
        )

    def spec(self) -> dict[str, Any]:
        """The document's specification."""
        found = self.given("kind", "address", "pool", "region", "stack", "owner")
        return {**found, "protected": bool(self.cleaned_data.get("/spec/protected"))}

    @staticmethod
    def typed_of(row: StaticIP) -> dict[str, Any]:
        """What the form shows of a stored one."""
        named = {field: getattr(row, field) for field in ("pool", "region", "stack", "owner")}
        return {
            "/spec/kind": row.kind,
            "/spec/address": row.address or "",
            "/spec/protected": row.protected,
            **{f"/spec/{field}": each.name if each else "" for field, each in named.items()},
        }


def _edit(request: PageRequest, form_class: Any, stored: Any, back: str, to: str) -> HttpResponse:
    """Show the form, or store what was typed and go on."""
    request.actor.may_write()
    initial = form_class.typed_of(stored) if stored else {}
    form: ObjectForm = form_class(request.POST or None, actor=request.actor, stored=stored, initial=initial)
    if form.is_bound and form.is_valid():
        typed = Typed(
            kind=form.kind,
            row=stored,
            name=form.cleaned_data.get("/name", ""),
            spec=form.spec(),
            version=version_sent(request) if stored else None,
        )
        if saved := save_or_attach_errors(request, typed, lambda error: attach_errors(form, error)):
            tell(request, typed, saved, f"{form.noun[0].upper()}{form.noun[1:]} {saved.name} is saved.")
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
    stored = only(places.cloud_accounts(request.actor), pk)
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
    return _edit(request, StackForm, only(places.stacks(request.actor), pk), "web:stacks", "web:stack")


@page
def new_address_pool(request: PageRequest) -> HttpResponse:
    """Name blocks that addresses are allotted from."""
    operators_only(request.actor, "address pools")
    return _edit(request, AddressPoolForm, None, "web:static-ips", "web:static-ips")


@page
def edit_address_pool(request: PageRequest, pk: int) -> HttpResponse:
    """Change the blocks of a pool."""
    operators_only(request.actor, "address pools")
    stored = only(places.address_pools(request.actor), pk)
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
    return _edit(request, StaticIPForm, only(places.static_ips(request.actor), pk), "web:static-ips", "web:static-ip")
