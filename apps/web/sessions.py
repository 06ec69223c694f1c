"""SHOW to people: signing in and out, with a limit on failed tries."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import views
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy

from apps.accounts import sign_in as limits
from apps.core.addresses import client_address

TOO_MANY = "Too many tries that failed. Wait fifteen minutes, or ask an operator."


class SignIn(views.LoginView):
    """A name and a password; only local pages are gone to afterwards (Django checks `next`)."""

    template_name = "pages/account/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Refuse before the password is looked at: a blocked guess learns nothing."""
        if limits.is_blocked(**self._try()):
            form = self.get_form_class()(request)  # unbound: no password is looked at
            return self.render_to_response(self.get_context_data(form=form, blocked=TOO_MANY), status=429)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """The right person: sign in, and forget their slips."""
        limits.note_success(**self._try())
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The same answer whether the name exists or not."""
        limits.note_failure(**self._try())
        return super().form_invalid(form)

    def _try(self) -> dict[str, str]:
        return {"username": self.request.POST.get("username", ""), "address": client_address(self.request)}


sign_in = SignIn.as_view()
sign_out = views.LogoutView.as_view(next_page=reverse_lazy("web:sign-in"))
