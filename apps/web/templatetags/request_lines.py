"""The address of the requests behind a number, so that one click leads from it to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.urls import reverse
from django.utils.http import urlencode

from apps.accounts.models import Account
from apps.logs.filters import word_of

register = template.Library()


@register.simple_tag(takes_context=True)
def requests_url(
    context: Mapping[str, Any], owner: Account | None = None, last: str = "15m", also: str = "", **words: str
) -> str:
    """`/requests?q=…` for words such as `pool=…`, and others as they are typed; `owner` is whose lines they are.

    Empty where the page of requests would show less than the number counts: of what is only shared, and of all accounts
    together.
    """
    actor = context["actor"]
    if (owner is None and actor.is_operator) or (owner and not actor.is_operator and owner.pk != actor.account.pk):
        return ""
    text = " ".join([*(word_of(name, value) for name, value in words.items()), *also.split()])
    asked = {"q": text, "last": last} if last else {"q": text}
    if owner and owner.pk != actor.account.pk:
        asked["account"] = owner.name
    return f"{reverse('web:requests')}?{urlencode(asked)}"
