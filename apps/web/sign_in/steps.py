"""What follows the password: second factor, passkeys, proving it again, a forgotten password."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account import views as account
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base import views as mfa
from allauth.mfa.webauthn import views as passkeys
from django.conf import settings
from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from apps.web.kit.pages import page


def own(view: Any) -> Callable[..., HttpResponse]:
    """A page about one's own account: for members, and never kept by a browser or a proxy."""
    shown: Any = view.as_view()
    return never_cache(page(shown))


class SecondStep(mfa.AuthenticateView):
    """A code or a passkey of the person whose password was right."""

    template_name = "pages/account/second_step.html"

    def form_invalid(self, form: Form) -> HttpResponse:
        """Say what was wrong; 429 when too many codes were."""
        blocked = form.has_error("code", "too_many_login_attempts")
        return self.render_to_response(self.get_context_data(), status=429 if blocked else 200)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Whose step it is, and which ways this person has."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        user = self.stage.login.user
        types = set(user.authenticator_set.values_list("type", flat=True))
        ways = {"codes": types - {"webauthn"}, "passkey": "webauthn" in types}
        return context | ways | {"username": user.get_username()}


class PasskeySignIn(passkeys.LoginWebAuthnView):
    """A passkey alone; asked by script for what the browser shall sign."""

    def form_invalid(self, form: Form) -> HttpResponse:  # noqa: ARG002 - allauth's signature
        """Back to the first step, with a reason."""
        messages.error(self.request, "This passkey does not belong to an account here. Sign in with your password.")
        return redirect("web:sign-in")


class ProveAgain(account.ReauthenticateView):
    """The password again, before a change of second factors."""

    template_name = "pages/account/prove_again.html"


class ProveAgainByCode(mfa.ReauthenticateView):
    """A code again, before a change of second factors."""

    template_name = "pages/account/prove_again.html"


class ProveAgainByPasskey(passkeys.ReauthenticateWebAuthnView):
    """A passkey again, before a change of second factors."""

    template_name = "pages/account/prove_again.html"

    def form_invalid(self, form: Form) -> HttpResponse:  # noqa: ARG002 - allauth's signature
        """Ask once more, with a reason."""
        messages.error(self.request, get_adapter().error_messages["incorrect_code"])
        return redirect(self.request.get_full_path())


class ForgottenPassword(account.PasswordResetView):
    """Asks for a link by mail; where no mail can be sent it says whom to ask."""

    template_name = "pages/account/forgotten.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Whether mails go out at all."""
        return super().get_context_data(**kwargs) | {"mails": settings.MAILS}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Send the link; the answer is the same whether anybody has the address."""
        answer: HttpResponse = (super().post if settings.MAILS else self.get)(request, *args, **kwargs)
        return answer


class NewPassword(account.PasswordResetFromKeyView):
    """The page behind the link in the mail."""

    template_name = "pages/account/new_password.html"


second_step = SecondStep.as_view()
passkey = PasskeySignIn.as_view()
again = own(ProveAgain)
again_by_code = own(ProveAgainByCode)
again_by_passkey = own(ProveAgainByPasskey)
forgotten = ForgottenPassword.as_view()
forgotten_sent = TemplateView.as_view(template_name="pages/account/forgotten_sent.html")
new_password = NewPassword.as_view()
new_password_done = TemplateView.as_view(template_name="pages/account/new_password_done.html")
inactive = TemplateView.as_view(template_name="pages/account/inactive.html")
