"""Checks of an object of a pool against the pool's other fields, by the rules that the compiler asks again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from apps.compiler.checks.servers import contradictions
from apps.compiler.model.servers import HttpVersion
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import Check, Data, Wrong

_NOTHING = {
    "http_version": HttpVersion.HTTP1,
    "host_header": "",
    "request_headers": (),
    "server_tls": None,
    "persistence": None,
    "health_check": None,
    "outlier_ejection": None,
    "connections": None,
    "retries": None,
}


def fits(name: str, *needs: str) -> Check:
    """What is said of the field `name` by `contradictions`; nothing where one of `needs` is itself wrong."""

    def ask(value: Any, data: Data) -> None:
        if not {"protocol", *needs} <= data.keys():
            return
        seen = SimpleNamespace(**(_NOTHING | dict(data) | {name: value}))
        found = [each for each in contradictions(seen) if each[0].partition(".")[0] == name]
        if found:
            raise Wrong(*(FieldError(_below(field), code, message) for field, code, message in found))

    return Check(ask)


def _below(field: str) -> str:
    """`server_tls.ca` → `/ca`, which leads on from the object."""
    return "".join(f"/{part}" for part in field.split(".")[1:])
