"""The forms of signing in, each of which slows guessing and survives whatever is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import (
    ChangePasswordForm,
    LoginForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SetPasswordForm,
)
from allauth.core import context
from allauth.mfa.adapter import get_adapter as get_mfa_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms

from apps.accounts.models import FailedSignIn
from apps.accounts.sign_in import limits, second_factor
from apps.core.addresses import client_address

LONGEST_CREDENTIAL = 20_000
LONGEST_NAME = 60


def _take_try(kind: FailedSignIn.Kind, name: str) -> Callable[[], None]:
    """Count a try of the present request, or raise ValidationError; what comes back forgives it."""
    who = {"username": name, "address": client_address(context.request)}
    if not limits.take_try(kind=kind, **who):
        raise get_adapter().validation_error("too_many_login_attempts")
    return lambda: limits.forgive(kind=kind, **who)


@contextmanager
def _refusals_logged(what: str, person: Any) -> Iterator[None]:
    """Tells the log of a second factor that is refused; nobody is known yet when a passkey alone signs in."""
    try:
        yield
    except forms.ValidationError as refusal:
        why = "too many tries" if refusal.code == "too_many_login_attempts" else f"wrong {what}"
        name = person.get_username() if person is not None else ""
        limits.log_refusal(why, username=name, address=client_address(context.request))
        raise


class SignInForm(LoginForm):
    """A name and a password; programs and tests know the field of the name as `username`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)
        self.fields["password"].help_text = ""

    def add_prefix(self, field_name: str) -> str:
        """Call the field of the name what it is."""
        return super().add_prefix("username" if field_name == "login" else field_name)


class _NewPassword(forms.Form):
    """A new password, twice; what it must be stands in one sentence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].label = "New password"
        self.fields[
            "password1"
        ].help_text = "At least 12 characters, and not a common password. Four random words work well."
        self.fields["password2"].label = "Repeat new password"
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)


class FirstPassword(_NewPassword, SetPasswordForm):
    """For somebody who came through a provider."""


class PasswordByLink(_NewPassword, ResetPasswordKeyForm):
    """For somebody who followed the link of a mail."""


class ChangePassword(_NewPassword, ChangePasswordForm):
    """The present password and a new one; guessing the present one is slowed like signing in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["oldpassword"].label = "Current password"
        self.fields["oldpassword"].help_text = ""

    def clean_oldpassword(self) -> str:
        """Refuse a wrong one."""
        given: str = self.cleaned_data["oldpassword"]
        person: Any = self.user
        if not get_adapter().reauthenticate(person, given):
            raise get_adapter().validation_error("enter_current_password")
        return given


class AskForReset(ResetPasswordForm):
    """Where to send a link; so few per address and person that nobody is flooded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].widget.attrs.pop("placeholder", None)

    def clean_email(self) -> str:
        """Count the mail that may go out."""
        _take_try(FailedSignIn.Kind.MAIL, self.cleaned_data["email"].lower())
        email: str = super().clean_email()
        return email


class _Code(forms.Form):
    """A code of the authenticator app, once, or a recovery code, once; few tries."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        widget = self.fields["code"].widget
        widget.attrs = {"autocomplete": "one-time-code", "autofocus": True, "maxlength": 20, "spellcheck": "false"}
        self.fields["code"].help_text = "The six-digit code from your authenticator app, or a recovery code."

    def clean_code(self) -> str:
        """Refuse a wrong one, and one that was used before."""
        person = self.user  # type: ignore[attr-defined]
        with _refusals_logged("code", person):
            forgive = _take_try(FailedSignIn.Kind.CODE, person.get_username())
            code: str = super().clean_code()  # type: ignore[misc]
            given: Authenticator = self.authenticator  # type: ignore[attr-defined]
            totp = given.type == Authenticator.Type.TOTP
            if totp and not second_factor.use_once(authenticator_id=given.pk, code=code):
                raise get_mfa_adapter().validation_error("incorrect_code")
        forgive()
        return code


class GiveCode(_Code, AuthenticateForm):
    """The second step of signing in."""


class GiveCodeAgain(_Code, ReauthenticateForm):
    """Before a change of second factors."""


class CredentialField(forms.JSONField):
    """What a browser made of a passkey: JSON of the shape that WebAuthn gives it, nothing else."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        """An object of short strings, or ValidationError."""
        if not isinstance(value, str) or len(value) > LONGEST_CREDENTIAL or "\\u" in value:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = None
        if not (isinstance(found, dict) and isinstance(found.get("response"), dict)):
            raise forms.ValidationError("The browser sent no passkey. Try again.", code="invalid")
        return found


class _Passkey(forms.Form):
    """A form with a passkey: whatever is no passkey is refused like a wrong one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["credential"] = CredentialField()

    def clean_credential(self) -> Any:
        """The authenticator that signed the challenge of this session."""
        with _refusals_logged("passkey", self.user):  # type: ignore[attr-defined]
            try:
                return super().clean_credential()  # type: ignore[misc]
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                if isinstance(error, forms.ValidationError):
                    raise
                raise get_mfa_adapter().validation_error("incorrect_code") from error


class GivePasskey(_Passkey, AuthenticateWebAuthnForm):
    """The second step of signing in."""


class SignInWithPasskey(_Passkey, LoginWebAuthnForm):
    """A passkey alone: it knows its person, and has asked for finger, face or PIN."""


class GivePasskeyAgain(_Passkey, ReauthenticateWebAuthnForm):
    """Before a change of second factors."""


class AddPasskey(AddWebAuthnForm):
    """A new passkey and what its person calls it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.pop("passwordless", None)  # ours always sign in alone
        self.fields["credential"] = CredentialField()
        self.fields["name"] = _name_field(required=False)

    def clean(self) -> dict[str, Any]:
        """Keep of the credential what is needed to know it again, and nothing that the browser adds."""
        try:
            cleaned: dict[str, Any] = super().clean()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, forms.ValidationError):
                raise
            raise get_mfa_adapter().validation_error("incorrect_code") from error
        if "credential" in cleaned:
            cleaned["credential"] = _kept(cleaned["credential"])
        return cleaned


class RenamePasskey(EditWebAuthnForm):
    """Another name for a passkey."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"] = _name_field(required=True)


def _name_field(*, required: bool) -> forms.CharField:
    attributes = {"autocomplete": "off"}
    return forms.CharField(
        max_length=LONGEST_NAME,
        required=required,
        validators=[second_factor.plain_name],
        widget=forms.TextInput(attrs=attributes),
        help_text="A name that you recognize, for example: laptop, phone, security key.",
    )


def _kept(credential: dict[str, Any]) -> dict[str, Any]:
    """The parts of a registered credential that are read later."""
    said = credential["response"]
    return {
        "id": str(credential["id"]),
        "rawId": str(credential["rawId"]),
        "type": "public-key",
        "response": {name: str(said[name]) for name in ("clientDataJSON", "attestationObject")},
        "clientExtensionResults": {"credProps": {"rk": True}},
    }
