"""Triggers: does a request come from somebody who knows the secret? Pure; every comparison in constant time.

Four ways to show it: the secret itself in a header, a signature of Standard Webhooks, of GitHub, and GitLab's token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime

from apps.schedules.models import Trigger
from apps.webhooks.signing import PREFIX, new_secret

# How far the clock of a signing sender may be off.
CLOCK_S = 300
MOST_SIGNATURES = 10
_DELIVERY = re.compile(r"[A-Za-z0-9._:/=+-]{1,100}")
_SECONDS = re.compile(r"[0-9]{1,12}")
Headers = Mapping[str, str]


def make_secret(sender: str) -> str:
    """A fresh secret in the form that this kind of sender takes."""
    return new_secret() if sender == Trigger.Sender.STANDARD_WEBHOOKS else f"swt_{secrets.token_urlsafe(32)}"


def authenticates(sender: str, secret: str, headers: Headers, body: bytes, now: datetime) -> bool:
    """Whether the request shows that its sender knows the secret, in the way that this kind of sender does."""
    return _CHECKS[sender](secret, headers, body, now)


def delivery_of(sender: str, headers: Headers) -> str:
    """The id that the sender gives a message and repeats when it sends it again; empty without a plain one."""
    for name in _DELIVERY_HEADERS[sender]:
        found = headers.get(name, "")
        if _DELIVERY.fullmatch(found):
            return found
    return ""


def _secret(secret: str, headers: Headers, _body: bytes, _now: datetime) -> bool:
    scheme, _, bearer = headers.get("Authorization", "").partition(" ")
    sent = bearer if scheme.lower() == "bearer" else headers.get("X-Trigger-Secret", "")
    return _same(sent, secret)


def _standard_webhooks(secret: str, headers: Headers, body: bytes, now: datetime) -> bool:
    message, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    fresh = bool(_SECONDS.fullmatch(stamp)) and abs(now.timestamp() - int(stamp)) <= CLOCK_S
    signed = f"{message}.{stamp}.".encode(errors="replace") + body
    wanted = "v1," + base64.b64encode(_mac(base64.b64decode(secret.removeprefix(PREFIX)), signed)).decode()
    given = headers.get("webhook-signature", "").split(" ")[:MOST_SIGNATURES]
    return any([_same(each, wanted) for each in given]) and fresh  # noqa: C419 - every one is compared


def _github(secret: str, headers: Headers, body: bytes, _now: datetime) -> bool:
    return _same(headers.get("X-Hub-Signature-256", ""), "sha256=" + _mac(secret.encode(), body).hex())


def _gitlab(secret: str, headers: Headers, _body: bytes, _now: datetime) -> bool:
    return _same(headers.get("X-Gitlab-Token", ""), secret)


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _same(sent: str, wanted: str) -> bool:
    return hmac.compare_digest(sent.encode(errors="replace"), wanted.encode())


_CHECKS: dict[str, Callable[[str, Headers, bytes, datetime], bool]] = {
    Trigger.Sender.SECRET: _secret,
    Trigger.Sender.STANDARD_WEBHOOKS: _standard_webhooks,
    Trigger.Sender.GITHUB: _github,
    Trigger.Sender.GITLAB: _gitlab,
}
_DELIVERY_HEADERS: dict[str, tuple[str, ...]] = {
    Trigger.Sender.SECRET: ("Idempotency-Key",),
    Trigger.Sender.STANDARD_WEBHOOKS: ("webhook-id",),
    Trigger.Sender.GITHUB: ("X-GitHub-Delivery",),
    Trigger.Sender.GITLAB: ("Idempotency-Key", "X-Gitlab-Event-UUID"),
}
