"""What django-allauth asks us: no open sign-up, our limits on guessing, sealed secrets, mail that delays nobody."""

from __future__ import annotations

import ipaddress
import logging
import threading
from smtplib import SMTPException
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.mail import EmailMessage
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from apps.accounts.models import FailedSignIn
from apps.accounts.sign_in import limits
from apps.compiler.address_spelling import spelled
from apps.core.addresses import client_address
from apps.core.secrets.sealing import seal, unseal

logger = logging.getLogger(__name__)
PASSWORD = FailedSignIn.Kind.PASSWORD


class AccountAdapter(DefaultAccountAdapter):
    """People sign in with a name; people come in by invitation only."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "Please enter a correct username and password. Both may be case-sensitive.",
        "too_many_login_attempts": limits.TOO_MANY,
        "incorrect_password": "This is not your password. Try again.",
        "enter_current_password": "This is not your current password. Try again.",
        "invalid_password_reset": "This link no longer works. Request a new link.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002 - allauth's signature
        """Never by form: an invitation makes people, see the pages of invitations and of OpenID Connect."""
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address as the rest of Spillway believes it; loopback for a program on the Unix socket itself."""
        try:
            return spelled(ipaddress.ip_address(client_address(request)))
        except ValueError:
            return "127.0.0.1"

    def is_safe_url(self, url: str | None) -> bool:
        """Only paths of this site are gone to after signing in."""
        return bool(url) and url_has_allowed_host_and_scheme(url, allowed_hosts=None)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the try before a password is looked at: a blocked guess learns nothing."""
        if not limits.take_try(kind=PASSWORD, **_who(request, credentials)):
            limits.log_refusal("too many tries", **_who(request, credentials))
            raise self.validation_error("too_many_login_attempts")

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """The person with this name and password, None when there is none."""
        user = super().authenticate(request, **credentials)
        if user is not None:
            limits.forgive(kind=PASSWORD, **_who(request, credentials))
        return user

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Nobody has this name with this password."""
        limits.log_refusal("wrong password", **_who(request, credentials))

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        """Begin a session with a key of its own, and forget those that are over."""
        super().login(request, user)
        request.session.clear_expired()

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send beside the request, so that its time does not tell whether there was somebody to write to."""
        message = self.render_mail(template_prefix, email, context)
        threading.Thread(target=_deliver, args=(message,), daemon=True).start()


class SecondFactorAdapter(DefaultMFAAdapter):
    """Second factors: what they are called, and how their secrets rest in the database."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "That did not match. Try again.",
    }

    def encrypt(self, text: str) -> str:
        """Seal a secret for the database."""
        return seal(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """The secret that was sealed."""
        return unseal(encrypted_text.encode()).decode()

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """This site, as passkeys know it."""
        return {"id": context.request.get_host().partition(":")[0], "name": "Spillway"}

    def generate_authenticator_name(self, user: AbstractBaseUser, type: Any) -> str:  # noqa: A002 - allauth's signature
        """A name for a new passkey until its person gives a better one."""
        number = Authenticator.objects.filter(user_id=user.pk, type=type).count() + 1
        return "Passkey" if number == 1 else f"Passkey {number}"


def _who(request: HttpRequest, credentials: dict[str, Any]) -> dict[str, str]:
    return {"username": str(credentials.get("username", "")), "address": client_address(request)}


def _deliver(message: EmailMessage) -> None:
    try:
        message.send()
    except (OSError, SMTPException) as error:
        logger.warning("a mail could not be sent: %s", error)
