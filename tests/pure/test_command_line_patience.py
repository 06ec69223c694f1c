"""What the command sends again: what the server says will soon be possible, under the same key, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from apps.cli.client.api import Api, Failure, Problem
from tests.receiver import Receiver, receiving

Answer = tuple[int, dict[str, str], bytes]
SOON, DONE = {"Retry-After": "0"}, (200, dict[str, str](), b"{}")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def answer(status: int, headers: dict[str, str]) -> Answer:
    return status, headers, json.dumps({"detail": f"It is {status}."}).encode()


def sent(receiver: Receiver, *answers: Answer) -> int:
    """How often a change is sent until these answers end it."""
    receiver.answers[:] = answers
    try:
        Api(f"http://127.0.0.1:{receiver.port}", "sw_x")("POST", "pools", body={})
    finally:
        keys = [each.headers["Idempotency-Key"] for each in receiver.heard]
        assert len(set(keys)) == 1
    return len(keys)


@pytest.mark.parametrize("status", [409, 429, 503])
def test_what_is_soon_possible_is_sent_again_with_the_same_key(receiver: Receiver, status: int) -> None:
    assert sent(receiver, answer(status, SOON), answer(status, SOON), DONE) == 3


@pytest.mark.parametrize(("status", "headers"), [(409, {}), (412, SOON), (422, SOON)])
def test_a_refusal_is_told_at_once(receiver: Receiver, status: int, headers: dict[str, str]) -> None:
    with pytest.raises(Problem, match=f"It is {status}"):
        sent(receiver, answer(status, headers), DONE)
    assert len(receiver.heard) == 1


def test_what_is_never_possible_is_given_up_with_what_the_server_said(receiver: Receiver) -> None:
    with pytest.raises(Failure, match=r"It is 409\. Stopped after 6 attempts"):
        sent(receiver, answer(409, SOON))
    assert len(receiver.heard) == 6
