"""The way in for nodes: a token for a machine, tokens that wait, the authorities, and the end of certificates."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions.selectors import only
from apps.definitions.shapes.base.fields import field_at
from apps.definitions.shapes.platform.topology import NodeSpec
from apps.enrolment import revoking, rotating, selectors, tokens
from apps.fleet import selectors as topology
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show, show_once
from apps.web.kit.saving import confirmed, telling
from apps.web.kit.shape_fields import form_field, typed


class TokenForm(forms.Form):
    """The node that a machine is to be."""

    use_required_attribute = False

    def __init__(self, *args: Any, fleets: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plain = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "maxlength": 63})
        self.fields["/node"] = forms.CharField(
            label="Node", widget=plain, help_text="A new name, or that of a node whose machine you replace."
        )
        self.fields["/fleet"] = forms.ChoiceField(label="Fleet", choices=[(name, name) for name in fleets])
        self.fields["/tags"] = form_field(field_at(NodeSpec, "tags"))


@page
def index(request: PageRequest) -> HttpResponse:
    """Tokens that can still be used, and the authorities with how many nodes depend on each."""
    operators_only(request.actor, "enrolment")
    context = {"tokens": selectors.tokens(request.actor)[:500], "authorities": selectors.believed(request.actor)}
    return show(request, "pages/enrolment/list.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """A form; then the command for the machine, which is shown this once."""
    operators_only(request.actor, "enrolment")
    request.actor.may_write("nodes")
    fleets = list(topology.fleets(request.actor).values_list("name", flat=True))
    chosen = {"/node": request.GET.get("node", ""), "/fleet": request.GET.get("fleet", "")}
    form = TokenForm(request.POST if request.method == "POST" else None, fleets=fleets, initial=chosen)
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            row, text = tokens.make_token(
                actor=request.actor,
                node=form.cleaned_data["/node"],
                fleet=form.cleaned_data["/fleet"],
                tags=typed(form.fields["/tags"], form.cleaned_data["/tags"]),
            )
            return show_once(
                request,
                "pages/enrolment/made.html",
                {"row": row, "command": tokens.command_with(text), "first": "first" in request.GET},
            )
    return show(request, "pages/enrolment/form.html", {"form": form}, status=422 if form.is_bound else 200)


@post_page
def withdraw(request: PageRequest, pk: int) -> HttpResponse:
    """A token that nobody used lets nobody in."""
    operators_only(request.actor, "enrolment")
    tokens.withdraw_token(actor=request.actor, token_id=pk)
    messages.success(request, "The token is withdrawn. It lets nobody in.")
    return redirect("web:enrolment")


@post_page
def rotate(request: PageRequest) -> HttpResponse:
    """A new authority signs; nodes go over by themselves."""
    operators_only(request.actor, "enrolment")
    with telling(request, "A new authority signs. Nodes get new certificates within minutes."):
        rotating.rotate(actor=request.actor)
    return redirect("web:enrolment")


@post_page
def retire(request: PageRequest, pk: int) -> HttpResponse:
    """Believe an authority no more, whoever still has its certificates."""
    operators_only(request.actor, "enrolment")
    with telling(request, "The authority is retired. Enrol the nodes again that still had its certificates."):
        rotating.retire(actor=request.actor, authority_id=pk)
    return redirect("web:enrolment")


@post_page
def revoke(request: PageRequest, pk: int) -> HttpResponse:
    """No console speaks to the node any more, once its name was typed."""
    operators_only(request.actor, "node")
    request.actor.may_write("nodes")
    row = only(topology.nodes(request.actor), pk)
    if confirmed(request, row.name, "revoke it"):
        with telling(request, f"The certificates of {row.name} are revoked. Enrol it again to let it back in."):
            revoking.revoke_node(actor=request.actor, name=row.name)
    return redirect("web:node", row.pk)
