"""Filters of templates for the Undo button of a message: where it posts, and what it sends."""

from __future__ import annotations

from urllib.parse import parse_qsl

from django import template
from django.contrib.messages.storage.base import Message

register = template.Library()
TAG = "undo:"


@register.filter
def undo_url(message: Message) -> str:
    """Where the button posts; empty for a message without one."""
    return _address(message).partition("?")[0]


@register.filter
def undo_fields(message: Message) -> list[tuple[str, str]]:
    """What the button sends, as pairs of name and value."""
    return parse_qsl(_address(message).partition("?")[2])


def _address(message: Message) -> str:
    tags = message.extra_tags or ""
    return tags.removeprefix(TAG) if tags.startswith(TAG) else ""
