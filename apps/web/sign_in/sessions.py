"""Signing in with a name and a password, and signing out."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView
from allauth.socialaccount.adapter import get_adapter as get_social_adapter
from django.contrib.auth import views
from django.forms import Form
from django.http import HttpResponse
from django.urls import reverse_lazy

from apps.core.addresses import is_address


class SignIn(LoginView):
    """The first step: name and password, a passkey, or a provider; only local pages are gone to afterwards."""

    template_name = "pages/account/sign_in.html"

    def form_invalid(self, form: Form) -> HttpResponse:
        """The same answer whether the name exists or not; 429 when too many tries failed."""
        blocked = form.has_error("__all__", "too_many_login_attempts")
        return self.render_to_response(self.get_context_data(form=form), status=429 if blocked else 200)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form, the way to the provider if there is one, and where to go afterwards."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        providers = get_social_adapter().list_providers(self.request)
        passkeys = not is_address(self.request.get_host())  # browsers make passkeys for names only
        return context | {"providers": providers, "next": context["redirect_field_value"], "passkeys": passkeys}


sign_in = SignIn.as_view()
sign_out = views.LogoutView.as_view(next_page=reverse_lazy("web:sign-in"))
