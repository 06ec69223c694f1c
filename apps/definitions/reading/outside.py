"""Reads URLs that we call, by what the installation allows."""

from __future__ import annotations

from apps.compiler.grammar import GrammarError
from apps.core import outbound
from apps.core.called_urls import Refused, read_url
from apps.webhooks.services import schemes


def called_url(value: object) -> str:
    """A URL that we call: https (http in development only), to no address that the installation does not allow."""
    text = value if isinstance(value, str) else ""
    try:
        outbound.check_target(read_url(text, schemes=schemes()))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return text
