"""Secrets and signatures as Standard Webhooks has them, so any of its libraries can check them."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime

from standardwebhooks import Webhook

PREFIX = "whsec_"


def new_secret() -> str:
    """A fresh secret, `whsec_` and base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(message_id: str, at: datetime, body: bytes, live_secrets: Iterable[str]) -> dict[str, str]:
    """The three headers; every live secret signs, so a receiver may change over at any time."""
    utc = at.astimezone(UTC)  # the library takes the digits of any other zone for UTC
    signatures = (Webhook(secret).sign(message_id, utc, body.decode()) for secret in live_secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
