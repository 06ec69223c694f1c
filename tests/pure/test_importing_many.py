"""Reading haproxy.cfg: many texts and conditions of one place, none of which is lost without a word."""

from __future__ import annotations

import json
import re

import pytest

from apps.importing.contract import Import
from apps.importing.logic.solving import MOST_ASKED
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import BACKENDS, DEFAULTS, frontend, read, routes, verdict_of

DENY = "http-request deny if bad"


def bots(count: int) -> list[str]:
    return [f"badbot-number-{number}-of-many" for number in range(count)]


def refused(found: Import) -> set[str]:
    """The bots for which a route answers 403."""
    patterns = [
        each["value"] for _, _, path, more, target in routes(found)
        if path == "/" and "fixed_response" in target for each in more.get("headers", ())
    ]  # fmt: skip
    return {each for each in bots(700) if any(re.fullmatch(pattern, f"x {each} y") for pattern in patterns)}


def test_a_list_of_texts_that_is_longer_than_a_pattern_becomes_several_patterns() -> None:
    line = f"acl bad hdr_sub(User-Agent) -i {' '.join(bots(20))}"
    found = frontend(line, DENY, "default_backend a")
    assert refused(found) == set(bots(20))
    assert verdict_of(found, DENY)[0] is Verdict.MAPPED


@pytest.mark.parametrize("count", [3, 9, 12, 40])
def test_each_line_of_an_acl_is_asked_however_many_there_are(count: int) -> None:
    lines = [f"acl bad hdr_sub(User-Agent) {bot}" for bot in bots(count)]
    found = frontend(*lines, DENY, "default_backend a")
    assert refused(found) == set(bots(count))
    assert verdict_of(found, DENY)[0] is Verdict.MAPPED


def test_alternatives_that_look_in_one_header_are_one_condition() -> None:
    found = frontend(
        "http-request deny if { hdr(X-Env) one } or { hdr(X-Env) two } or { path /x }", "default_backend a"
    )
    headers = [more["headers"] for _, _, path, more, _ in routes(found) if path == "/" and more]
    assert headers == [[{"name": "x-env", "match": "regex", "value": "(one|two)"}]]


@pytest.mark.parametrize("count", [9, 12, 30])
def test_many_headers_are_each_asked(count: int) -> None:
    lines = [f"http-request deny if {{ hdr(X-Trap-{number}) -m found }}" for number in range(count)]
    found = frontend(*lines, "default_backend a")
    asked = json.dumps([more for _, _, _, more, target in routes(found) if "fixed_response" in target])
    assert all(f'"x-trap-{number}"' in asked for number in range(count))
    assert {verdict_of(found, line)[0] for line in lines} == {Verdict.MAPPED}
    assert "where several of them hold at once" in verdict_of(found, "frontend fe")[1]


def test_conditions_beyond_the_bound_are_said_at_their_lines() -> None:
    lines = [f"http-request deny if {{ hdr(X-Trap-{number}) -m found }}" for number in range(MOST_ASKED + 2)]
    found = frontend(*lines, "default_backend a")
    verdicts = [verdict_of(found, line)[0] for line in lines]
    assert verdicts == [Verdict.MAPPED] * MOST_ASKED + [Verdict.NOT_POSSIBLE] * 2
    assert "beside the many other conditions" in verdict_of(found, lines[-1])[1]


def test_a_line_that_asks_two_things_beside_too_many_others_is_not_called_dead() -> None:
    lines = [f"http-request deny if {{ hdr(X-Trap-{number}) -m found }}" for number in range(30)]
    pair = "use_backend b if { hdr(X-One) -m found } { hdr(X-Two) -m found }"
    found = frontend(*lines, pair, "default_backend a")
    assert verdict_of(found, pair)[0] is Verdict.NOT_POSSIBLE


def test_a_missing_list_of_many_texts_is_still_asked_for() -> None:
    text = f"{DEFAULTS}frontend fe\n bind :80\n {DENY.replace('bad', '{ hdr_sub(User-Agent) -f /bots.lst }')}\n"
    found = read(f"{text} default_backend a\n{BACKENDS}", {"/bots.lst": "\n".join(bots(60))})
    assert refused(found) == set(bots(60))


@pytest.mark.parametrize(
    ("condition", "is_said"),
    [
        ("hdr(Accept) -i application/json", True),
        ("hdr_beg(User-Agent) curl", True),
        ("hdr_reg(User-Agent) ^Mozilla.*Mobile", True),
        ("hdr_sub(User-Agent) curl", False),
        ("hdr_reg(User-Agent) (curl|wget)", False),
        ("req.fhdr(User-Agent) -m beg curl", False),
        ("hdr(X-Env) prod", False),
    ],
)
def test_parts_of_a_header_that_are_compared_as_a_whole_are_said(condition: str, *, is_said: bool) -> None:
    line = f"use_backend b if {{ {condition} }}"
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert verdict is (Verdict.DIFFERENT if is_said else Verdict.MAPPED)
    assert ("between commas" in why) is is_said
