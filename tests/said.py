"""What people read of pages and answers, and what must not stand there: Python text, internal ids, digests as names."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

UNSAID = re.compile(
    r"<[A-Z]\w+|=[A-Z]\w+\(|object at 0x|\b[A-Z]\w+(?:Error|Exception)\(|\b[0-9a-f]{64}\b"
    r"|(?<![./\w-])(?:(?:certs|maps)/|pool-\d+/)?(?:pool|rgn|srv|lst|crt|bkd|vip|route|lb)-\d+\b(?!\.[a-z]+\.)"
    r"|\brules-[0-9a-f]{12}\b"
)
# What is shown as it stands in a file, in a request or on a disk may have our ids: it is code. So are digests in fields
# that are called so.
_CODE = re.compile(
    r"<(script|style|pre|code|svg|textarea)\b.*?</\1>|<div class=\"diff\".*?</ol>|<dd class=\"mono\">.*?</dd>"
    r"|<p class=\"caption mono\">.*?</p>",
    re.DOTALL,
)
# Fields that say by their name that they are an identity, or what stands in a file.
_IDENTITY = re.compile(r"(^|_)(id|ids|digest|etag|fingerprint|sha256|secret|token|document|difference|files|address)$")


def words_of_page(text: str) -> str:
    """What people read of a page: no code, no attributes."""
    return html.unescape(re.sub(r"<[^>]*>", " ", _CODE.sub(" ", text)))


def words_of_json(value: Any, field: str = "") -> Iterator[str]:
    """Every text of an answer but identities and contents."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from words_of_json(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from words_of_json(each, field)
    elif isinstance(value, str) and not _IDENTITY.search(field):
        yield value


def words_of(kind: str, body: str) -> list[str]:
    """What people read of an answer of this content type."""
    if "html" in kind:
        return [words_of_page(body)]
    if "json" in kind and "jsonl" not in kind:
        return list(words_of_json(json.loads(body)))
    return [body]


def unsaid(texts: list[str]) -> list[str]:
    """Everything that must not stand there."""
    return [match[0] for text in texts for match in UNSAID.finditer(text)]
