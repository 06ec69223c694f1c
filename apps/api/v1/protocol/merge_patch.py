"""JSON merge patch (RFC 7396): objects are merged field by field, null clears, the rest replaces."""

from __future__ import annotations

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """`target` with `patch` laid over it; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for field, value in patch.items():
        if value is None:
            found.pop(field, None)
        else:
            found[field] = merged(found.get(field), value)
    return found
