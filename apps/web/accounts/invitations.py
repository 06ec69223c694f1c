"""The page behind the link of an invitation: come in as who you are, or as somebody new."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import rotate_token
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts import roles
from apps.accounts.choosing import CHOSEN, IMPERSONATION
from apps.accounts.models import Invitation, Membership, User
from apps.accounts.sign_in import invitations
from apps.core.errors import Conflict, Invalid, NotFound
from apps.members.invitations import come_in_as_new
from apps.web.kit.field_errors import attach_errors
from apps.web.kit.pages import METHODS

# Read by apps/web/sign_in/openid.py: a first sign-in through a provider accepts this invitation.
SESSION_KEY = "invitation"
BACKEND = "django.contrib.auth.backends.ModelBackend"
TEMPLATE = "pages/invitations/accept.html"


class NewPersonForm(forms.Form):
    """A name and a password of one's own choice."""

    use_required_attribute = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name = forms.TextInput(attrs={"autocomplete": "username", "maxlength": 150, "autocapitalize": "none"})
        secret = forms.PasswordInput(attrs={"autocomplete": "new-password"})
        self.fields["/username"] = forms.CharField(
            label="Username", max_length=150, widget=name, help_text="Letters, digits and @ . + - _."
        )
        self.fields["/password"] = forms.CharField(
            label="Password", strip=False, widget=secret, help_text="At least 12 characters, and not a common password."
        )


@require_http_methods(METHODS)
@never_cache
def accept(request: HttpRequest, secret: str) -> HttpResponse:
    """GET shows who invites into what; POST comes in. Wrong, expired, revoked and used links look the same."""
    found = invitations.open_invitation(secret)
    if found is None:
        return _gone(request)
    request.session[SESSION_KEY] = secret
    is_new = request.method == "POST" and not request.user.is_authenticated
    form, refused = NewPersonForm(request.POST if is_new else None), ""
    if request.method == "POST":
        try:
            if (answer := _come_in(request, secret, form)) is not None:
                return answer
        except NotFound:
            return _gone(request)  # somebody else was faster
        except Invalid as error:
            attach_errors(form, error)
            refused = "" if is_new else error.detail
        except Conflict as error:
            refused = error.detail
    return _page(request, found, form, refused)


def _come_in(request: HttpRequest, secret: str, form: NewPersonForm) -> HttpResponse | None:
    """A person who is signed in joins; anybody else becomes a new person, None when the form is not filled in."""
    if isinstance(request.user, User):
        return _joined(request, invitations.accept_invitation(secret=secret, user=request.user))
    if not form.is_valid():
        return None
    data = form.cleaned_data
    user = come_in_as_new(secret=secret, username=data["/username"], password=data["/password"])
    login(request, user, backend=BACKEND)
    return _joined(request, user.memberships.get())


def _page(request: HttpRequest, found: Invitation, form: NewPersonForm, refused: str) -> HttpResponse:
    role = roles.word_of(found.account.kind, found.role)
    context: dict[str, Any] = {"invitation": found, "role": role, "form": form, "refused": refused}
    context["providers"] = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    return render(request, TEMPLATE, context, status=422 if refused or form.errors else 200)


def _gone(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/invitations/gone.html", {"detail": invitations.GONE}, status=404)


def _joined(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Act for the new account from here on."""
    for key in (SESSION_KEY, IMPERSONATION):
        request.session.pop(key, None)
    request.session[CHOSEN] = membership.account_id
    rotate_token(request)  # forms that stand open in other tabs are of the former account
    messages.success(request, "Welcome to your account.")
    return redirect("web:overview")
