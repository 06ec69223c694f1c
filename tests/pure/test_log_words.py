"""Words for how requests ended, and the stretches of their time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from apps.drivers.logs.contract import Record
from apps.logs import meaning
from apps.logs.words import REASONS, column_of, ending_of, phases, sentence_of

RECORD = Record(
    time=datetime(2026, 1, 31, tzinfo=UTC), id="1", node="eu-1", fleet="eu", account=1, load_balancer="main",
    listener="http", request_ms=2, queue_ms=3, connect_ms=5, response_ms=7, total_ms=30,
)  # fmt: skip


def test_every_reason_of_a_line_has_words() -> None:
    table = {
        word
        for line in (meaning.__doc__ or "").splitlines()
        if line.startswith("| `")
        for word in line.split("`")[1::2]
    }
    assert table == set(REASONS)
    assert set(meaning.BLOCKS.values()) <= set(REASONS)


@pytest.mark.parametrize(
    ("letters", "sentence"),
    [
        ("--", ""),
        ("----", ""),
        ("", ""),
        ("sH--", "The server was silent for too long before the response began."),
        ("CD--", "The client closed the connection while the response was sent."),
        ("SC", "The server closed or refused the connection while the load balancer connected to the server."),
        ("K-", "An operator ended the connection."),
        ("?H", ""),
    ],
)
def test_the_letters_of_a_session_become_a_sentence(letters: str, sentence: str) -> None:
    assert ending_of(letters) == sentence


def test_a_reason_of_a_newer_version_is_shown_as_it_is() -> None:
    assert (column_of("sent_to_mars"), sentence_of("sent_to_mars")) == ("sent to mars", "")
    assert (column_of(""), sentence_of("")) == ("", "")


def test_stretches_follow_each_other_and_make_the_total() -> None:
    found = phases(RECORD)
    assert [(each.begun_ms, each.took_ms) for each in found] == [(0, 2), (2, 3), (5, 5), (10, 7), (17, 13)]


def test_what_was_not_reached_has_no_duration() -> None:
    found = phases(replace(RECORD, connect_ms=None, response_ms=None))
    assert [each.took_ms for each in found] == [2, 3, None, None, None]
