"""Where the settings ask for a second factor, who has none sets one up before anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.accounts.models import Account
from apps.accounts.sign_in.second_factor import has_second_factor

OPEN = {"sign-in", "sign-out"}
# What the navigation of every page asks for, also of the one to which people are led: nothing leads away from there.
OF_NAVIGATION = {"badges"}


class SecondFactorRequired:
    """Leads people without a second factor from every page to the one where they get it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:  # noqa: ARG002
        """Before a page: is one missing? The pages of one's own account stand outside of `web`."""
        match = request.resolver_match
        if not settings.REQUIRE_SECOND_FACTOR or match is None or match.namespace != "web" or match.url_name in OPEN:
            return None
        if not is_required_of(request) or has_second_factor(request.user):  # type: ignore[arg-type]
            return None
        if match.url_name in OF_NAVIGATION:
            return HttpResponse(status=204)
        messages.warning(request, "Set up a second factor first: an authenticator app or a passkey.")
        return redirect("mfa_index")


def is_required_of(request: HttpRequest) -> bool:
    """Whether the settings ask this person for one; who came through a provider was asked there."""
    user: Any = request.user
    if not settings.REQUIRE_SECOND_FACTOR or not user.is_authenticated:
        return False
    if any(record["method"] == "socialaccount" for record in get_authentication_records(request, user)):
        return False
    operators = user.memberships.filter(account__kind=Account.Kind.OPERATOR)
    return bool(settings.REQUIRE_SECOND_FACTOR == "everyone" or operators.exists())
