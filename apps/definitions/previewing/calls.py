"""One object as people pass it on: the document that apply takes, and the call of the API that makes it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from apps.definitions.reading.describing import KIND_OF_MODEL, Row, envelope
from apps.definitions.services import KINDS


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the API; `curl` sends it with the token in the environment."""

    method: str
    path: str
    body: str

    @property
    def curl(self) -> str:
        """The same for a shell; a body of several lines stays as it is."""
        return (
            f'curl -X {self.method} "$SPILLWAY{self.path}" -H "Authorization: Bearer $TOKEN" '
            f"-H 'Content-Type: application/json' -H 'If-Match: *' -d {shlex.quote(self.body)}"
        )


def is_described(row: Any) -> bool:
    """Whether rows of this model are objects of the API by themselves."""
    return type(row) in KIND_OF_MODEL


def yaml_of(row: Row) -> str:
    """The document of a row, without secrets."""
    return as_yaml(envelope(row))


def as_yaml(found: Mapping[str, Any]) -> str:
    """An object as a file that apply takes."""
    return str(yaml.safe_dump({"objects": [dict(found)]}, sort_keys=False, allow_unicode=True))


def call_of(row: Row) -> Call:
    """The call that makes the object, or makes it again what it is."""
    return making(envelope(row), indent=2)


def making(found: Mapping[str, Any], *, indent: int | None = None) -> Call:
    """The call that creates or replaces the object of a document."""
    named = "/".join(found[part] for part in ("account", "name") if part in found)
    body = json.dumps({"spec": found["spec"]}, ensure_ascii=False, indent=indent)
    return Call("PUT", f"/api/v1/{KINDS[found['kind']].noun}/{named}", body)
