"""The navigation of every page, which looks alike for all who may do the same on the same page and is drawn once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def navigation(context: Mapping[str, Any]) -> SafeString:
    """The links for the actor; the one of this page is marked, and groups that were closed are."""
    request, actor = context["request"], context.get("actor")
    here = request.resolver_match.url_name if request.resolver_match else ""
    folded = request.COOKIES.get("folded", "")
    operator, role = bool(actor and actor.is_operator), actor.role if actor else "viewer"
    return _drawn(here, folded, operator=operator, role=role, badges=reverse("web:badges"))


@functools.lru_cache(maxsize=256)
def _drawn(here: str, folded: str, *, operator: bool, role: str, badges: str) -> SafeString:
    looks = {"here": here, "folded": folded, "operator": operator, "role": role, "badges": badges}
    return render_to_string("components/navigation.html", looks | {"may_write": role != "viewer"})
