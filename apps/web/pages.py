"""SHOW to people: what every page does: know the actor, answer whole or in part, turn refusals into pages."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from apps.accounts.actors import Actor, actor_of_user
from apps.core.errors import Forbidden, NotFound

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
PARTIAL = re.compile(r"[a-z][a-z-]{0,30}")


class PageRequest(HttpRequest):
    """A request of somebody who is signed in: it knows the actor."""

    actor: Actor


def page(
    view: Callable[Concatenate[PageRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Let only signed-in members in, and answer what may not be seen like what does not exist."""

    @login_required
    @functools.wraps(view)
    def guarded(request: Any, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        actor = actor_of_user(request.user)
        if actor is None:
            raise PermissionDenied("You are signed in but belong to no account. Ask an operator to add you to one.")
        request.actor = actor
        try:
            actor.must_be_active()
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.detail) from error
        except Forbidden as error:
            raise PermissionDenied(error.detail) from error

    return guarded


def operators_only(actor: Actor, what: str) -> None:
    """Answer customers as if the page did not exist; `what` is the page's name."""
    if not actor.is_operator:
        raise NotFound(f"There is no page {what}.")


def show(request: PageRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render the page, or the one partial of it that `?partial=` names."""
    partial = request.GET.get("partial", "")
    name = f"{template}#{partial}" if PARTIAL.fullmatch(partial) else template
    may_write = request.actor.role != "viewer"
    response = render(request, name, {"actor": request.actor, "may_write": may_write, **context}, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
