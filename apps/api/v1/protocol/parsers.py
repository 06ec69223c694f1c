"""Bodies are read by the strict readers of definitions, as JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from apps.core.errors import Malformed
from apps.definitions.reading.texts import MAX_BYTES, read_json, read_yaml


def _content(stream: IO[Any]) -> bytes:
    # One byte more than allowed is enough to know, whatever Content-Length said.
    content: bytes = stream.read(MAX_BYTES + 1)
    return content


class StrictJSONParser(BaseParser):
    """application/json."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], _media_type: str | None = None, _parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """The value. Raises Malformed."""
        content = _content(stream)
        if not content.strip():
            raise Malformed("The body is empty; send one JSON object.")
        return read_json(content)


class MergePatchParser(StrictJSONParser):
    """application/merge-patch+json (RFC 7396), which every PATCH takes; plain JSON is read the same."""

    media_type = "application/merge-patch+json"


class StrictYAMLParser(BaseParser):
    """application/yaml (RFC 9512)."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[Any], _media_type: str | None = None, _parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """The value. Raises Malformed."""
        return read_yaml(_content(stream))


class OldYAMLParser(StrictYAMLParser):
    """The name that YAML had before it was registered."""

    media_type = "application/x-yaml"
