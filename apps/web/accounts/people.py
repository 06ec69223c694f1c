"""Who is in an account, with which role, who is invited, and a way in for more."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import Account, Invitation, Membership
from apps.accounts.selectors import account_named, only
from apps.core.clock import now
from apps.members import invitations, people, selectors
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, page, post_page, show, show_once
from apps.web.kit.saving import telling

SHOWN = 500
MAY = {
    "admin": "full access, including members and tokens",
    "editor": "edits routes, pools and certificates",
    "viewer": "read-only",
}


def role_choices(account: Account) -> list[tuple[str, str]]:
    """The roles of an account, each with what it may."""
    words = roles.WORDS[Account.Kind(account.kind)]
    return [(word, f"{word}: {MAY[role]}") for role, word in reversed(words.items())]


def may_manage(actor: Actor, account: Account) -> bool:
    """Whether the actor manages the account's people and tokens: its admins, and operators for customers."""
    if actor.role == Membership.Role.VIEWER:
        return False
    return actor.role == Membership.Role.ADMIN if account.pk == actor.account.pk else actor.is_operator


def people_of(actor: Actor, account: Account) -> dict[str, Any]:
    """What the tables of people and invitations print."""
    rows = list(selectors.memberships(actor).filter(account=account)[: SHOWN + 1])
    open_ones = selectors.invitations(actor).filter(account=account)[:SHOWN]
    return {
        "account": account,
        "people": [
            {"membership": row, "role": roles.word_of(account.kind, row.role), "is_me": row.user_id == actor.user_id}
            for row in rows[:SHOWN]
        ],
        "more_people": len(rows) > SHOWN,
        "shown": SHOWN,
        "invitations": [
            {"row": row, "role": roles.word_of(account.kind, row.role), "expired": row.expires_at <= now()}
            for row in open_ones
        ],
        "words": [word for word, _ in role_choices(account)],
        "may_manage": may_manage(actor, account),
    }


class InviteForm(forms.Form):
    """An address and a role; where mail works, whether the link goes there or is shown here."""

    use_required_attribute = False

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hint = "The invitee's email address."
        self.fields["/email"] = forms.CharField(
            label="Email address", help_text=hint, widget=forms.EmailInput(attrs={"autocomplete": "off"})
        )
        self.fields["/role"] = forms.ChoiceField(label="Role", choices=role_choices(account), initial="viewer")
        if invitations.mail_works():
            self.fields["mail"] = forms.BooleanField(
                label="Email the link to this address",
                required=False,
                initial=True,
                help_text="Otherwise the link is shown to you once, so that you can send it yourself.",
            )


@page
def index(request: PageRequest) -> HttpResponse:
    """The people of one's own account."""
    return show(request, "pages/people/list.html", people_of(request.actor, request.actor.account))


@page
def invite(request: PageRequest) -> HttpResponse:
    """Invite somebody into one's own account, or an operator into the one that `?account=` names."""
    account = _account(request)
    request.actor.must_manage(account, "people", invitations.NOUN)
    form = InviteForm(request.POST if request.method == "POST" else None, account=account)
    if form.is_bound and form.is_valid() and (made := _invite(request, form, account)):
        return made
    return show(
        request, "pages/people/invite.html", {"form": form, "account": account}, status=422 if form.is_bound else 200
    )


def _account(request: PageRequest) -> Account:
    name = request.GET.get("account")
    return account_named(request.actor, name) if name else request.actor.account


def _invite(request: PageRequest, form: InviteForm, account: Account) -> HttpResponse | None:
    with refusals_in(form, conflicts_at="/email"):
        row, secret = invitations.invite(
            actor=request.actor,
            email=form.cleaned_data["/email"],
            role=form.cleaned_data["/role"],
            account=account.name,
        )
        return _invited(request, row, secret, mail=form.cleaned_data.get("mail", False))
    return None


def _invited(request: PageRequest, row: Invitation, secret: str, *, mail: bool) -> HttpResponse:
    link = request.build_absolute_uri(reverse("web:invitation", args=[secret]))
    failed = mail and not invitations.mail_link(invitation=row, link=link)
    context = {"row": row, "role": roles.word_of(row.account.kind, row.role), "failed": failed}
    return show_once(request, "pages/people/invited.html", context | ({} if row.mailed else {"link": link}))


def back_to(actor: Actor, account: Account) -> HttpResponseRedirect:
    """Where the people of the account are shown."""
    return redirect("web:people") if account.pk == actor.account.pk else redirect("web:account", account.name)


@post_page
def change_role(request: PageRequest, pk: int) -> HttpResponse:
    """Another role for a person."""
    row = people_row(request, pk)
    with telling(request):
        changed = people.change_role(actor=request.actor, membership_id=pk, role=request.POST.get("role"))
        messages.success(request, f"{changed.user} is now {roles.word_of(changed.account.kind, changed.role)}.")
    return back_to(request.actor, row.account)


@post_page
def remove(request: PageRequest, pk: int) -> HttpResponse:
    """Take a person out of the account; their tokens stay, because programs use them."""
    row = people_row(request, pk)
    with telling(request):
        people.remove_person(actor=request.actor, membership_id=pk)
        messages.success(
            request, f"{row.user} is no longer a member of {row.account}. Tokens of the account keep working."
        )
        if row.user_id == request.actor.user_id:
            return redirect("web:overview")
    return back_to(request.actor, row.account)


def people_row(request: PageRequest, pk: int) -> Membership:
    """The membership among those that the actor may see. Raises NotFound."""
    return only(selectors.memberships(request.actor), pk)


@post_page
def take_back(request: PageRequest, pk: int) -> HttpResponse:
    """Revoke an invitation."""
    row = invitations.take_back(actor=request.actor, invitation_id=pk)
    messages.success(request, f"The invitation of {row.email} is revoked.")
    return back_to(request.actor, row.account)
