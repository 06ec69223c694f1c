"""The API tokens of their account: what each may, until when, from where; a new one, and its end."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.accounts import roles
from apps.accounts.models import Account, ApiToken
from apps.accounts.quotas import quota
from apps.accounts.scopes import NOUNS, VERBS
from apps.accounts.selectors import only
from apps.core.clock import now
from apps.members import selectors, tokens
from apps.web.accounts.people import may_manage, role_choices
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show, show_once
from apps.web.kit.presets import Preset, fill_in
from apps.web.kit.saving import confirmed
from apps.web.kit.worst_first import first_of

SHOWN = 500
DAYS = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (180, "180 days"), (365, "1 year"))
NEVER = "never"
# What customers cannot use anyway; leaving it out keeps their form short.
PLATFORM_NOUNS = ("accounts", "fleets", "grants", "nodes", "regions", "revisions", "rollouts", "static-ips")
_DEPLOYED = (
    "backends",
    "certificates",
    "hostnames",
    "network-lists",
    "plans",
    "policies",
    "pools",
    "routes",
    "servers",
)
_WATCHED = ("alerts", "backends", "events", "overflow", "pools", "request-logs", "routes", "servers")


def presets_of(account: Account) -> dict[str, Preset]:
    """Tokens as programs need them most, in the words of roles that the account has."""
    viewer, editor, owner = (role for role, _ in role_choices(account))
    return {
        "read-only": Preset("Read only", "Reads everything, changes nothing.", {"/role": viewer, "/scopes": []}),
        "deploy": Preset(
            "Deploy pipeline",
            "Changes what carries traffic: routes, pools, policies, certificates.",
            {"/role": editor, "/scopes": [f"{noun}:write" for noun in _DEPLOYED]},
        ),
        "servers": Preset(
            "Servers",
            "Lets servers register, drain and return by themselves.",
            {"/role": editor, "/scopes": ["backends:read", "pools:read", "servers:write"]},
        ),
        "monitoring": Preset(
            "Monitoring",
            "Reads traffic, health, alerts and request lines.",
            {"/role": viewer, "/scopes": [f"{noun}:read" for noun in _WATCHED]},
        ),
        "full": Preset("Full access", "May do all that an administrator may.", {"/role": owner, "/scopes": []}),
    }


class TokenForm(forms.Form):
    """A name, a role, and what narrows it."""

    use_required_attribute = False

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plain = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "maxlength": 63})
        days = [(str(number), words) for number, words in DAYS] + ([(NEVER, "never")] if account.is_operator else [])
        nouns = ["*", *(noun for noun in NOUNS if account.is_operator or noun not in PLATFORM_NOUNS)]
        self.nouns = nouns
        self.fields["/name"] = forms.CharField(
            label="Name", widget=plain, help_text="The application that uses it, e.g. ci or backup."
        )
        self.fields["/role"] = forms.ChoiceField(label="Role", choices=role_choices(account), initial="viewer")
        self.fields["/expires_in_days"] = forms.ChoiceField(
            label="Expires after", choices=days, initial=str(tokens.USUAL_DAYS)
        )
        self.fields["/networks"] = forms.CharField(
            label="Networks",
            required=False,
            widget=forms.Textarea(
                attrs={"rows": 3, "spellcheck": "false", "class": "mono", "placeholder": "192.0.2.0/24"}
            ),
            help_text="Networks or addresses that may use the token, one per line. Default: any.",
        )
        self.fields["/scopes"] = forms.MultipleChoiceField(
            label="Scopes", required=False, choices=[(f"{noun}:{verb}",) * 2 for noun in nouns for verb in VERBS]
        )

    @property
    def ticked(self) -> list[str]:
        """The scopes whose boxes are ticked."""
        return self["/scopes"].value() or []

    @property
    def scope_rows(self) -> list[tuple[str, list[tuple[str, bool]]]]:
        """Each noun with its two boxes, ticked where they were."""
        ticked = set(self.ticked)
        return [
            (noun, [(scope, scope in ticked) for scope in (f"{noun}:{verb}" for verb in VERBS)]) for noun in self.nouns
        ]

    @property
    def is_narrow(self) -> bool:
        """Whether scopes or networks narrow it, or are wrong."""
        return any(self[name].value() or self[name].errors for name in ("/scopes", "/networks"))

    @property
    def wanted(self) -> dict[str, Any]:
        """What the service takes."""
        data = self.cleaned_data
        days = data["/expires_in_days"]
        return {
            "name": data["/name"],
            "role": data["/role"],
            "scopes": data["/scopes"],
            "networks": data["/networks"].split(),
            "expires_in_days": None if days == NEVER else int(days),
        }


@page
def index(request: PageRequest) -> HttpResponse:
    """The tokens of one's own account; everybody of the account reads which there are."""
    account = request.actor.account
    rows, context = first_of(selectors.tokens(request.actor).filter(account=account), SHOWN)
    context |= {
        "rows": [_row(row) for row in rows],
        "most": quota(account, "tokens"),
        "may_manage": may_manage(request.actor, account),
    }
    return show(request, "pages/tokens/list.html", context)


def _row(row: ApiToken) -> dict[str, Any]:
    left = row.expires_at - now() if row.expires_at else None
    state = ("good", "good", "Active")
    if left is not None and left.total_seconds() <= 0:
        state = ("idle", "stop", "Expired")
    elif left is not None and left.days < 14:
        state = ("warn", "warn", "Expires soon")
    return {"token": row, "state": state, "role": roles.word_of(row.account.kind, row.role)}


@page
def new(request: PageRequest) -> HttpResponse:
    """A form; then the token's text, which is shown this once."""
    account = request.actor.account
    request.actor.must_manage(account, "tokens", tokens.NOUN)
    own = selectors.tokens(request.actor).filter(account=account)
    form = form_for(request, None, own, partial(_form_of, account))
    presets = presets_of(account)
    chosen = fill_in(request, form, presets)
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            row, text = tokens.make_token(actor=request.actor, **form.wanted)
            url = request.build_absolute_uri("/api/v1/routes")
            command = f'curl -H "Authorization: Bearer $SPILLWAY_TOKEN" {url}'
            return show_once(request, "pages/tokens/made.html", {"row": _row(row), "text": text, "command": command})
    context = {"form": form, "presets": presets, "chosen": chosen}
    return show(request, "pages/tokens/form.html", context, status=422 if form.is_bound else 200)


def _form_of(account: Account, data: QueryDict | None, stored: ApiToken | None) -> TokenForm:
    initial: dict[str, Any] = {}
    if stored is not None:
        initial = {"/role": roles.word_of(account.kind, stored.role), "/scopes": stored.scopes}
        initial["/networks"] = "\n".join(map(str, stored.networks))
    return TokenForm(data, account=account, initial=initial)


@post_page
def revoke(request: PageRequest, pk: int) -> HttpResponse:
    """End a token, once its name was typed."""
    row = only(selectors.tokens(request.actor), pk)
    if not confirmed(request, row.name, "revoke it"):
        return redirect("web:tokens")
    tokens.revoke_token(actor=request.actor, token_id=pk)
    messages.success(request, f"Token {row.name} is revoked. Applications that use it now get 401.")
    return redirect("web:tokens")
