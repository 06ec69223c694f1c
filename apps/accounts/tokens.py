"""API tokens: made once, shown once, found again by key id and compared by HMAC."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Q

from apps.accounts.models import Account, ApiToken
from apps.core.clock import now

logger = logging.getLogger(__name__)
Made = tuple[ApiToken, str]
_NOBODYS = "0" * 64
_FORM = re.compile(r"sw_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")


def _digest(pepper: str, secret: str) -> str:
    return hmac.new(settings.TOKEN_PEPPERS[pepper].encode(), secret.encode(), hashlib.sha256).hexdigest()


@transaction.atomic
def create_token(
    *,
    account: Account,
    name: str,
    role: str,
    lifetime: timedelta | None = None,
    scopes: Sequence[str] = (),
    networks: Sequence[str] = (),
    created_by: str = "",
) -> str:
    """Make a token and return its text, the only time that it can be read; no lifetime means that it never ends."""
    return new_token(
        account=account,
        name=name,
        role=role,
        lifetime=lifetime,
        scopes=scopes,
        networks=networks,
        created_by=created_by,
    )[1]


def new_token(*, lifetime: timedelta | None, scopes: Sequence[str], networks: Sequence[str], **fields: Any) -> Made:
    """The row of a new token, stored, and the token's text."""
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    pepper = next(iter(settings.TOKEN_PEPPERS))
    row = ApiToken.objects.create(
        key_id=key_id,
        pepper=pepper,
        digest=_digest(pepper, secret),
        expires_at=now() + lifetime if lifetime else None,
        scopes=list(scopes),
        networks=list(networks),
        **fields,
    )
    return row, f"sw_{key_id}_{secret}"


def find_token(text: str, address: str) -> ApiToken | None:
    """The live token with this text, used from this address, else None.

    Malformed, unknown, expired, revoked, wrong and used from another network look the same, and take the same time:
    an unknown key id costs a digest as well.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    live = Q(expires_at=None) | Q(expires_at__gt=now())
    token = ApiToken.objects.select_related("account").filter(live, key_id=match[1], revoked_at=None).first()
    if token is None or token.pepper not in settings.TOKEN_PEPPERS:
        hmac.compare_digest(_digest(next(iter(settings.TOKEN_PEPPERS)), match[2]), _NOBODYS)
        return None
    if not hmac.compare_digest(token.digest, _digest(token.pepper, match[2])):
        return None
    if not within(address, token.networks):
        return None
    _note_use(token, address)
    return token


def within(address: str, networks: Sequence[str]) -> bool:
    """Whether an address lies in one of the networks (CIDR); no networks are everywhere, no address is nowhere."""
    if not networks:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in ipaddress.ip_network(network) for network in networks)


def _note_use(token: ApiToken, address: str) -> None:
    # Once a minute is enough for people, and keeps reads of the API free of writes.
    if token.last_used_at is None or now() - token.last_used_at > timedelta(minutes=1):
        try:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now(), last_used_from=address[:45])
        except OperationalError:  # somebody writes for long: no reason to refuse who only reads
            logger.warning("the use of token %s was not noted", token.key_id, exc_info=True)
