"""The address of the requests behind a number, so that one click leads from it to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.http import urlencode

from apps.accounts.models import Account
from apps.core.clock import now
from apps.logs.filters import word_of
from apps.logs.searching import EVERY

register = template.Library()


@register.simple_tag(takes_context=True)
def requests_url(
    context: Mapping[str, Any],
    owner: Account | None = None,
    last: str = "15m",
    also: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    **words: str,
) -> str:
    """`/requests?q=…` for words such as `pool=…`, and others as they are typed; empty words are left out.

    The time is from `since` until `until`, which is now by default, else the `last` minutes. `owner` is whose lines
    they are; without one they are those of all that the actor sees. Empty where the page of requests would show less
    than the number counts: of what is only shared.
    """
    actor = context["actor"]
    if owner and not actor.is_operator and owner.pk != actor.account.pk:
        return ""
    text = " ".join([*(word_of(name, value) for name, value in words.items() if value), *also.split()])
    asked = {"q": text, "last": last} if last else {"q": text}
    if since:
        asked = {"q": text, "from": _instant(since), "to": _instant(until or now())}
    if not owner and actor.is_operator:
        asked["account"] = EVERY
    elif owner and owner.pk != actor.account.pk:
        asked["account"] = owner.name
    return f"{reverse('web:requests')}?{urlencode(asked)}"


def _instant(at: datetime) -> str:
    """As the page of requests takes it."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
