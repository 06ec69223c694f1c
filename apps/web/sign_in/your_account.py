"""How one signs in oneself: password, authenticator app, passkeys, recovery codes, provider."""

from __future__ import annotations

from typing import Any

import qrcode
from allauth.account import views as account
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.views import IndexView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from allauth.mfa.webauthn.internal import auth as webauthn
from allauth.socialaccount.adapter import get_adapter as get_social_adapter
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.views import ConnectionsView
from django.http import HttpRequest
from django.urls import reverse_lazy

from apps.core.addresses import is_address
from apps.web.sign_in.second_factor import is_required_of
from apps.web.sign_in.steps import own
from apps.web.sign_in.your_sessions import sessions_of

SECURITY = reverse_lazy("mfa_index")


def who_looks(request: HttpRequest) -> dict[str, Any]:
    """The actor and what it may, for the frame of pages that render themselves."""
    actor = getattr(request, "actor", None)
    return {} if actor is None else {"actor": actor, "may_write": actor.role != "viewer"}


class Security(IndexView):
    """Every way into this account, and what to do about each."""

    template_name = "pages/account/security.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the person has."""
        user: Any = self.request.user
        rows = list(Authenticator.objects.filter(user_id=user.pk).order_by("created_at"))
        codes = next((row.wrap() for row in rows if row.type == Authenticator.Type.RECOVERY_CODES), None)
        return super(IndexView, self).get_context_data(**kwargs) | {
            "app": next((row for row in rows if row.type == Authenticator.Type.TOTP), None),
            "passkeys": [row for row in rows if row.type == Authenticator.Type.WEBAUTHN],
            "codes_left": len(codes.get_unused_codes()) if codes else None,
            "has_password": user.has_usable_password(),
            "connections": list(SocialAccount.objects.filter(user_id=user.pk)),
            "providers": get_social_adapter().list_providers(self.request),
            "sessions": len(sessions_of(user, current=self.request.session.session_key or "")),
            "required": is_required_of(self.request),
            "passkeys_work": not is_address(self.request.get_host()),
        }


class AddApp(totp.ActivateTOTPView):
    """An authenticator app: scan, type the first code."""

    template_name = "pages/account/app_add.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The secret as a picture of modules, drawn by the template, and as text to type."""
        context: dict[str, Any] = super(totp.ActivateTOTPView, self).get_context_data(**kwargs)
        secret: str = context["form"].secret
        person: Any = self.request.user
        path, size = qr_path(get_adapter().build_totp_url(person, secret))
        groups = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
        return context | {"qr_path": path, "qr_size": size, "secret": groups}


class RemoveApp(totp.DeactivateTOTPView):
    """No authenticator app any more."""

    template_name = "pages/account/app_remove.html"


class RecoveryCodes(recovery_codes.ViewRecoveryCodesView):
    """The codes, shown this once."""

    template_name = "pages/account/recovery_codes.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The codes as a text to copy, one a line."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return context | {"text": "\n".join(context["unused_codes"])}


class NewRecoveryCodes(recovery_codes.GenerateRecoveryCodesView):
    """New codes in place of the old ones."""

    template_name = "pages/account/recovery_codes_new.html"


class AddPasskey(passkeys.AddWebAuthnView):
    """A passkey that signs in alone: it is kept with its person's name and asks for finger, face or PIN."""

    template_name = "pages/account/passkey_add.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the browser shall make."""
        context: dict[str, Any] = super(passkeys.AddWebAuthnView, self).get_context_data(**kwargs)
        person: Any = self.request.user
        return context | {"js_data": {"creation_options": webauthn.begin_registration(person, True)}}


class RenamePasskey(passkeys.EditWebAuthnView):
    """Another name for a passkey."""

    template_name = "pages/account/passkey_rename.html"
    success_url = SECURITY


class RemovePasskey(passkeys.RemoveWebAuthnView):
    """One passkey less."""

    template_name = "pages/account/passkey_remove.html"
    success_url = SECURITY


class ChangePassword(account.PasswordChangeView):
    """The present password and a new one."""

    template_name = "pages/account/password.html"
    success_url = SECURITY


class SetPassword(account.PasswordSetView):
    """A first password, for somebody who came through a provider."""

    template_name = "pages/account/password.html"
    success_url = SECURITY


class Connections(ConnectionsView):
    """Takes a provider away from one's account; the list itself stands on the page of the account."""

    template_name = "pages/account/connection_remove.html"
    success_url = SECURITY


def qr_path(text: str) -> tuple[str, int]:
    """The dark modules of a QR code as an SVG path of unit squares, and the side of the square that holds them."""
    code = qrcode.QRCode(border=2, error_correction=qrcode.constants.ERROR_CORRECT_M)
    code.add_data(text)
    rows = code.get_matrix()
    dark = [f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, module in enumerate(row) if module]
    return "".join(dark), len(rows)


security = own(Security)
app_add = own(AddApp)
app_remove = own(RemoveApp)
codes = own(RecoveryCodes)
codes_new = own(NewRecoveryCodes)
passkey_add = own(AddPasskey)
passkey_rename = own(RenamePasskey)
passkey_remove = own(RemovePasskey)
password = own(ChangePassword)
password_first = own(SetPassword)
connections = own(Connections)
