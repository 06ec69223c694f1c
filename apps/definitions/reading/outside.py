"""Reads URLs that we call, by what the installation allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from apps.compiler.grammar import GrammarError
from apps.core import outbound
from apps.core.called_urls import Refused, read_url
from apps.webhooks.services import schemes

T = TypeVar("T")


def or_blank(allowed: Callable[[object], T]) -> Callable[[object], T | str]:
    """The grammar, or an empty text."""
    return lambda value: "" if value == "" and isinstance(value, str) else allowed(value)


def called_url(value: object) -> str:
    """A URL that we call: https (http in development only), to no address that the installation does not allow."""
    text = value if isinstance(value, str) else ""
    try:
        outbound.check_target(read_url(text, schemes=schemes()))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return text


def short_called_url(value: object) -> str:
    """The same of at most 400 characters, without a query."""
    text = called_url(value)
    if len(text) > 400 or "?" in text:
        raise GrammarError("url", "Use a URL of at most 400 characters, without a query.")
    return text
