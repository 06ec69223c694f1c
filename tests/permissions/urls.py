"""Every URL that the project answers, found by walking Django's resolver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import get_resolver
from django.urls.resolvers import URLPattern

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "LOCK", "UNLOCK")


def every_url() -> list[str]:
    """The names of all of them, with their name space; what has no name is called by its pattern."""
    return sorted(set(_walk(get_resolver(), "", "")))


def _walk(resolver: Any, space: str, prefix: str) -> Iterator[str]:
    for entry in resolver.url_patterns:
        pattern = f"{prefix}{entry.pattern}"
        if isinstance(entry, URLPattern):
            yield f"{space}{entry.name}" if entry.name else f"/{pattern}"
        else:
            inner = f"{space}{entry.namespace}:" if entry.namespace else space
            yield from _walk(entry, inner, pattern)
