"""Signing in through a provider of OpenID Connect; a new person needs an open invitation."""

from __future__ import annotations

import secrets
from typing import Any

import jwt
from allauth.account.utils import get_next_redirect_url
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from requests import RequestException

from apps.accounts.models import User
from apps.accounts.sign_in import invitations
from apps.core.errors import SpillwayError

# Where the page of an invitation leaves its secret for a person who then goes to the provider.
INVITATION = "invitation"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
DESCRIPTION_LASTS = 300
LEEWAY = 60  # seconds by which the clocks of provider and console may differ


class OpenIDAdapter(DefaultSocialAccountAdapter):
    """One provider from the settings, none from the database; people come in by invitation only."""

    def list_apps(
        self,
        request: HttpRequest,  # noqa: ARG002 - allauth's signature
        provider: str | None = None,
        client_id: str | None = None,
    ) -> list[Any]:
        """The provider of the settings."""
        known: Any = settings.SOCIALACCOUNT_PROVIDERS
        return [
            SocialApp(provider="openid_connect", **app)
            for app in known["openid_connect"]["APPS"]
            if provider in {None, "openid_connect", app["provider_id"]} and client_id in {None, app["client_id"]}
        ]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:  # noqa: ARG002
        """Only for somebody who opened an invitation that still stands."""
        if invitations.open_invitation(request.session.get(INVITATION, "")) is None:
            raise _closed(request)
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:  # noqa: ARG002
        """Nobody fills a form: the provider has said who it is."""
        return True

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> Any:
        """Make the person and accept the invitation, both or neither."""
        try:
            with transaction.atomic():
                user = super().save_user(request, sociallogin, form)
                invitations.accept_invitation(secret=request.session.pop(INVITATION), user=user)
        except SpillwayError as error:  # somebody else was faster, or the account is full
            raise _closed(request) from error
        return user

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> Any:
        """What the provider says of a new person; an address only when the provider has verified it."""
        verified = any(address.verified is True for address in sociallogin.email_addresses)
        return super().populate_user(request, sociallogin, data | {"email": data.get("email") if verified else None})

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Connect to the one person here with the verified address, if the operator's settings say so.

        Addresses of people are verified: by the link of an invitation that was mailed, or by this provider.
        """
        if sociallogin.is_existing or request.user.is_authenticated or not settings.OIDC_CONNECT_BY_EMAIL:
            return
        for address in sociallogin.email_addresses:
            people = list(User.objects.filter(email__iexact=address.email, is_active=True)[:2])
            if address.verified is True and len(people) == 1:
                sociallogin.connect(request, people[0])
                return

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:  # noqa: ARG002
        """Back to the page of one's own account."""
        return reverse("mfa_index")


class CheckedOpenID(OpenIDConnectOAuth2Adapter):
    """Checks what allauth leaves to TLS: signature, nonce, issuer, and that both answers speak of one person."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's description, remembered for minutes, if it is the provider that the settings name."""
        key = f"openid:{settings.OIDC_ISSUER}"
        config: dict[str, Any] = cache.get(key) or super().openid_config
        if str(config.get("issuer", "")).rstrip("/") != settings.OIDC_ISSUER:
            raise OAuth2Error("the description names another issuer")
        cache.set(key, config, DESCRIPTION_LASTS)
        return config

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> SocialLogin:
        """The person of the ID token, with what the provider says more about the same person."""
        claims = self._decode_id_token(app, kwargs["response"].get("id_token") or "")
        more = self._fetch_user_info(token.token) if "userinfo_endpoint" in self.openid_config else claims
        if more.get("sub") != claims["sub"]:
            raise OAuth2Error("the provider speaks of two people")
        answers = {"userinfo": more, "id_token": claims}
        return _provider(request, self.provider_id).sociallogin_from_response(request, answers)  # type: ignore[no-any-return]

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        """The claims of a token that this provider signed for us, now, for this very sign-in; or OAuth2Error."""
        try:
            header = jwt.get_unverified_header(id_token)
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key=self._key(header.get("kid")),
                algorithms=ALGORITHMS,
                audience=app.client_id,
                issuer=self.openid_config["issuer"],
                leeway=LEEWAY,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            raise OAuth2Error("the ID token is not one of this provider for us") from error
        if claims.get("azp", app.client_id) != app.client_id:
            raise OAuth2Error("the ID token was made for somebody else")
        if not (self.nonce and secrets.compare_digest(str(claims.get("nonce", "")).encode(), self.nonce.encode())):
            raise OAuth2Error("the ID token belongs to another sign-in")
        return claims

    def _key(self, key_id: str | None) -> jwt.PyJWK:
        adapter: Any = get_adapter()
        with adapter.get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
        for key in jwt.PyJWKSet.from_dict(answer.json()).keys:
            if key_id in {None, key.key_id}:
                return key
        raise jwt.InvalidKeyError("no key of this name")


class Callback(OAuth2CallbackView):
    """The way back from the provider."""

    def _get_state(self, request: HttpRequest, provider: Any) -> tuple[Any, Any]:
        state, refusal = super()._get_state(request, provider)
        checked: Any = self.adapter
        checked.nonce = (state or {}).get("nonce", "")
        return state, refusal


def _closed(request: HttpRequest) -> ImmediateHttpResponse:
    return ImmediateHttpResponse(render(request, "pages/account/no_account.html", status=403))


def _provider(request: HttpRequest, provider_id: str) -> Any:
    try:
        return get_adapter().get_provider(request, provider_id)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error


@never_cache
def go(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the person to the provider: code flow with PKCE, a state and a nonce that this session keeps."""
    provider = _provider(request, provider_id)
    provider.oauth2_adapter_class = CheckedOpenID
    nonce = secrets.token_urlsafe(24)
    process = AuthProcess.CONNECT if request.user.is_authenticated else AuthProcess.LOGIN
    try:
        answer: HttpResponse = provider.redirect(
            request, process, get_next_redirect_url(request), auth_params={"nonce": nonce}, nonce=nonce
        )
    except (OAuth2Error, RequestException, KeyError) as error:
        answer = render_authentication_error(request, provider, exception=error)
    return answer


@never_cache
def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Take what the provider says about the person."""
    _provider(request, provider_id)
    callback: Any = Callback
    answer: HttpResponse = callback.adapter_view(CheckedOpenID(request, provider_id))(request)
    return answer


@never_cache
def cancelled(request: HttpRequest) -> HttpResponse:
    """The person changed their mind at the provider."""
    messages.info(request, "The provider did not sign you in. Try again, or use another sign-in method.")
    return redirect("web:sign-in")
