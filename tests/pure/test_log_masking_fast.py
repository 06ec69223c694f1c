"""What makes masking fast changes no answer: it is compared with the plain form, which looks at every piece anew."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apps.drivers.logs.contract import Record
from apps.logs.collect.masking import _BORDER, _HEADER, _NAMED, _PATH, _QUERY, DEPTH, MASK, SECRETS, Masking, _joined

USUAL = Masking(names=SECRETS)
WORDS = (
    "token", "apiKey", "APIKey", "%74oken", "%2574oken", "X-Amz-Signature", "user[password]", "monkey", "colour", "été",
    "s3cret", "=", "==", "%3D", "%253D", "%25253D", "&", "&&", "%26", "%2526", ";", ";;", "/", "?", "%3F", "#", ",",
    " ", "%", "%%", "%zz", "%00", "\u212aey", "TOKEN", "",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=14).map("".join)


def spelled(name: str) -> str:
    return f"-{'-'.join(part.lower() for part in _BORDER.split(name) if part)}-"


def is_secret(name: str) -> bool:
    return any(spelled(each) in spelled(unquote(name)) for each in SECRETS)


def secret_after(piece: str) -> int:
    return next((found.end() for found in _NAMED.finditer(piece) if is_secret(found[1])), 0)


def plain_piece(piece: str) -> str:
    if end := secret_after(piece):
        return piece[:end] + MASK
    (name, equals), plain = piece.partition("=")[:2], piece
    for _ in range(DEPTH):
        plain = unquote(plain)
        if any(secret_after(each) for each in plain.split("&")):
            return f"{name}={MASK}" if equals else MASK
    return piece


def plainly(text: str, between: re.Pattern[str]) -> str:
    return "".join(plain_piece(piece) for piece in between.split(text))


def record(path: str, query: str, headers: dict[str, str]) -> Record:
    return Record(
        time=datetime(2026, 1, 31, tzinfo=UTC), id="1", node="n1", fleet="f", account=7, load_balancer="front",
        listener="http", path=path, query=query, headers=headers,
    )  # fmt: skip


@pytest.mark.slow(reason="who draws the first text on a fresh machine reads the tables of Unicode")
@settings(max_examples=20, deadline=None)
@given(TEXTS, TEXTS, TEXTS, TEXTS)
@example("/proxy/https%3A%2F%2Fa%2F%3Ftoken%3Ds3cret", "x=1&%74oken=s3cret&y", "X-Api-Key", "s3cret")
@example("/a/b", "next=%2Fa%3FapiKey%3Ds3cret&&token=", "Referer", "https://a/?token=s3cret, colour")
@example("/a=b/%2574oken%253Ds3cret", "a%3Dtoken%3D1", "Cookie", "a=1; token%3Ds3cret")
def test_the_fast_form_gives_the_answer_of_the_plain_one(path: str, query: str, name: str, value: str) -> None:
    kept = USUAL.of(record(path, query, {name: value}))
    pieces = _HEADER.split(value)
    header = MASK if value and is_secret(name) else _joined(pieces, list(map(plain_piece, pieces)))
    assert (kept.path, kept.query, kept.headers) == (plainly(path, _PATH), plainly(query, _QUERY), {name: header})


def test_what_one_account_hides_is_not_remembered_for_another() -> None:
    line = record("/", "colour=red&token=s3cret", {})
    for _ in range(2):
        assert USUAL.of(line).query == "colour=red&token=***"
        assert Masking(names=("colour",)).of(line).query == "colour=***&token=s3cret"
