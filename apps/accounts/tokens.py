"""API tokens: made once, shown once, found again by key id and compared by HMAC."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from apps.accounts.models import Account, ApiToken
from apps.core.clock import now

_FORM = re.compile(r"sw_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")


def _digest(pepper: str, secret: str) -> str:
    return hmac.new(settings.TOKEN_PEPPERS[pepper].encode(), secret.encode(), hashlib.sha256).hexdigest()


@transaction.atomic
def create_token(*, account: Account, name: str, role: str, lifetime: timedelta | None = None) -> str:
    """Make a token and return its text, the only time that it can be read."""
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    pepper = next(iter(settings.TOKEN_PEPPERS))
    ApiToken.objects.create(
        account=account,
        name=name,
        role=role,
        key_id=key_id,
        pepper=pepper,
        digest=_digest(pepper, secret),
        expires_at=now() + lifetime if lifetime else None,
    )
    return f"sw_{key_id}_{secret}"


def find_token(text: str) -> ApiToken | None:
    """The live token with this text, or None: malformed, unknown, expired, revoked and wrong look the same."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    live = Q(expires_at=None) | Q(expires_at__gt=now())
    token = ApiToken.objects.select_related("account").filter(live, key_id=match[1], revoked_at=None).first()
    if token is None or token.pepper not in settings.TOKEN_PEPPERS:
        return None
    if not hmac.compare_digest(token.digest, _digest(token.pepper, match[2])):
        return None
    _note_use(token)
    return token


def _note_use(token: ApiToken) -> None:
    # Once a minute is enough for people, and keeps reads of the API free of writes.
    if token.last_used_at is None or now() - token.last_used_at > timedelta(minutes=1):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now())
