"""A provider of OpenID Connect as a process of its own: django-oauth-toolkit, SQLite, a key made at start.

`python tests/e2e/oidc_provider.py PORT DIRECTORY CALLBACK` serves until it is ended. People: `ann` and `ben`, both
with the password `provider password`; ann's address is verified, ben's is not. `/mischief?what=…` makes the next ID
token wrong in one way.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings

CLIENT_ID, CLIENT_SECRET = "spillway-console", "a secret that the two share"
PASSWORD = "provider password"
MISCHIEF = {"what": ""}


def new_key() -> str:
    """An RSA key in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def configure(port: int, directory: Path) -> None:
    """Settings of the provider."""
    settings.configure(
        SECRET_KEY="of the provider",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": directory / "provider.sqlite3"}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        # Tables straight from the models: the history of the library's migrations takes longer than the tests.
        MIGRATION_MODULES=dict.fromkeys(("auth", "contenttypes", "sessions", "oauth2_provider")),
        SESSION_COOKIE_NAME="provider",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        LOGIN_URL="/login",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}/o",
            "OIDC_RSA_PRIVATE_KEY": new_key(),
            "PKCE_REQUIRED": True,
            "SCOPES": {"openid": "who", "profile": "name", "email": "address"},
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Claims",
        },
    )
    django.setup()


def main() -> None:
    """Make the tables, the people and the client, and serve."""
    port, directory, callback = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    configure(port, directory)
    define()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", run_syncdb=True, verbosity=0)
    for name in ("ann", "ben"):
        User.objects.create_user(name, f"{name}@example.org", PASSWORD)
    Application.objects.create(
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=callback,
        algorithm="RS256",
        skip_authorization=True,
    )
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, verbosity=0)


def spoilt(token: str, what: str) -> str:
    """The token, wrong in one way and signed again."""
    import jwt

    claims = jwt.decode(token, options={"verify_signature": False})
    kid = jwt.get_unverified_header(token)["kid"]
    wrong: dict[str, dict[str, Any]] = {
        "nonce": {"nonce": "of somebody else"},
        "no nonce": {"nonce": ""},
        "audience": {"aud": "another-client"},
        "issuer": {"iss": "https://evil.example"},
        "person": {"sub": "somebody-else"},
        "expired": {"exp": 1},
    }
    claims |= wrong.get(what, {})
    if what == "unsigned":
        return jwt.encode(claims, "", "none", headers={"kid": kid})
    if what == "shared secret":
        return jwt.encode(claims, CLIENT_SECRET, "HS256", headers={"kid": kid})
    known: dict[str, Any] = getattr(settings, "OAUTH2_PROVIDER")  # noqa: B009 - not a setting of the console
    own = new_key() if what == "signature" else known["OIDC_RSA_PRIVATE_KEY"]
    return jwt.encode(claims, own, "RS256", headers={"kid": kid})


def define() -> None:
    """What can only be said after django.setup(): the claims and the URLs."""
    from django.contrib.auth import authenticate, login
    from django.http import HttpResponse
    from django.urls import include, path
    from oauth2_provider.oauth2_validators import OAuth2Validator

    class Claims(OAuth2Validator):  # type: ignore[misc]
        oidc_claim_scope = None

        def get_additional_claims(self, request: Any) -> dict[str, Any]:
            name = request.user.username
            return {
                "sub": f"{name}-at-the-provider",
                "preferred_username": name,
                "email": request.user.email,
                "email_verified": name == "ann",
            }

        def finalize_id_token(self, id_token: Any, token: Any, token_handler: Any, request: Any) -> str:
            good: str = super().finalize_id_token(id_token, token, token_handler, request)
            return spoilt(good, MISCHIEF["what"]) if MISCHIEF["what"] else good

    def sign_in(request: Any) -> HttpResponse:
        user = authenticate(request, username=request.GET.get("as", ""), password=PASSWORD)
        if user is None:
            return HttpResponse("who?", status=401)
        login(request, user)
        return HttpResponse(status=302, headers={"Location": request.GET["next"]})

    def mischief(request: Any) -> HttpResponse:
        MISCHIEF["what"] = request.GET["what"]
        return HttpResponse()

    globals()["Claims"] = Claims
    globals()["urlpatterns"] = [
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
        path("login", sign_in),
        path("mischief", mischief),
    ]


if __name__ == "__main__":
    main()
