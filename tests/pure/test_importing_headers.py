"""Reading haproxy.cfg: headers that lines of any version change, remove or replace, and what of it has no place."""

from __future__ import annotations

from typing import Any

import pytest

from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import frontend, rules_of, spec_of, verdict_of


def rules(found: Import, hostname: str = "*") -> dict[str, Any]:
    (route,) = [
        each["spec"] for each in found.documents
        if each["kind"] == "Route" and each["spec"]["hostname"] == hostname
    ]  # fmt: skip
    return rules_of(found, route)


@pytest.mark.parametrize(
    ("line", "block", "names"),
    [
        ("reqidel ^X-Debug:.*", "request_headers", ["X-Debug"]),
        ("reqidel ^(Via|X-Trace):", "request_headers", ["Via", "X-Trace"]),
        ("rspidel ^Server:", "response_headers", ["Server"]),
        ("rspdel ^(Server|X-Powered-By):.*", "response_headers", ["Server", "X-Powered-By"]),
    ],
)
def test_headers_that_1_x_removes_are_removed(line: str, block: str, names: list[str]) -> None:
    found = frontend(line, "default_backend a")
    assert rules(found)[block] == {"remove": names}
    assert verdict_of(found, line)[0] is Verdict.MAPPED


@pytest.mark.parametrize(
    "line", ["rspidel ^Set-Cookie:\\ internal=", "reqidel ^Cookie:.*session", "rspidel ^X-AspNet.*:\\ 4"]
)
def test_a_header_that_is_removed_for_what_it_says_stays(line: str) -> None:
    found = frontend(line, "default_backend a")
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.NOT_POSSIBLE
    assert "for what it says" in why
    assert rules(found) == {}


def test_a_header_whose_name_only_begins_so_stays() -> None:
    found = frontend("rspidel ^X-AspNet.*", "default_backend a")
    assert verdict_of(found, "rspidel ^X-AspNet.*")[0] is Verdict.DIFFERENT
    assert rules(found)["response_headers"] == {"remove": ["X-AspNet"]}


def test_an_attribute_that_is_put_behind_each_cookie_becomes_no_cookie() -> None:
    line = "rsprep ^Set-Cookie:\\ (.*) Set-Cookie:\\ \\1;\\ Partitioned"
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE
    assert rules(found) == {}


def test_a_host_that_1_x_replaces_is_that_of_its_requests_alone() -> None:
    line = "reqirep ^Host:\\ old.acme.example Host:\\ new.acme.example"
    found = frontend(line, "default_backend a")
    assert rules(found, "old.acme.example")["rewrite"] == {"host": "new.acme.example"}
    assert "rewrite" not in rules(found)
    each = frontend("reqirep ^Host: Host:\\ new.acme.example", "default_backend a")
    assert rules(each)["rewrite"] == {"host": "new.acme.example"}


@pytest.mark.parametrize("action", ["replace-header", "replace-value"])
def test_a_header_that_is_replaced_as_a_whole_is_set(action: str) -> None:
    host, header = f"http-request {action} Host (.*) shop.acme.example", f"http-request {action} X-Env ^.*$ prod"
    found = frontend(host, header, "default_backend a")
    assert rules(found)["rewrite"] == {"host": "shop.acme.example"}
    assert rules(found)["request_headers"] == {"set": {"X-Env": "prod"}}
    assert verdict_of(found, host)[0] is Verdict.MAPPED
    assert verdict_of(found, header)[0] is Verdict.DIFFERENT
    part = f"http-request {action} X-Env (.*) one-\\1"
    assert verdict_of(frontend(part, "default_backend a"), part)[0] is Verdict.NOT_POSSIBLE


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("http-response set-header Connection keep-alive", Verdict.DIFFERENT),
        ("http-response set-header Keep-Alive timeout=5", Verdict.DIFFERENT),
        ("http-response del-header ^Server:.*", Verdict.DEAD),
        ("http-request del-header ^X-Debug:.*", Verdict.DEAD),
        ("http-request del-header Host", Verdict.DIFFERENT),
        ("http-request set-header Host %[req.hdr(Host),lower]", Verdict.DIFFERENT),
        ("http-request set-header Host %[req.hdr(Host)]", Verdict.MAPPED),
    ],
)
def test_headers_of_connections_and_names_that_none_can_have(line: str, verdict: Verdict) -> None:
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is verdict
    assert rules(found) == {}


def test_a_location_that_is_a_host_alone_gets_a_slash() -> None:
    bare, whole = (f"redirect location https://www.acme.example{end} if {{ path /a }}" for end in ("", "/"))
    verdict, why = verdict_of(frontend(bare, "default_backend a"), bare)
    assert verdict is Verdict.DIFFERENT
    assert "slash behind its host" in why
    found = frontend(whole, "default_backend a")
    assert verdict_of(found, whole)[0] is Verdict.MAPPED
    assert spec_of(found, "Route", "fe-any-a")["action"]["redirect"]["host"] == "www.acme.example"


@pytest.mark.parametrize(
    ("captured", "said"),
    [
        (["capture request header Origin len 128"], "{header:Origin}"),
        (["capture request header Other len 9", "http-request capture req.hdr(Origin) len 9"], "{header:Other}"),
        (["declare capture request len 9", "http-request capture req.hdr(Origin) id 0"], "{header:Origin}"),
        (["declare capture request len 9"], None),
        ([], None),
    ],
)
def test_what_a_frontend_captures_of_a_request_is_known_while_it_is_answered(
    captured: list[str], said: str | None
) -> None:
    line = "http-response set-header X-From %[capture.req.hdr(0)] if { capture.req.hdr(0) https://a.example }"
    found = frontend(*captured, line, "default_backend a")
    changed = [each["spec"] for each in found.documents if each["kind"] == "Route" and "rules" in each["spec"]]
    assert [each["rules"]["response_headers"]["set"]["X-From"] for each in changed] == ([said] if said else [])
    assert [each["headers"][0]["name"] for each in changed] == ([said[8:-1].lower()] if said else [])
    assert (verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE) is (said is None)


def test_servers_get_the_host_that_was_captured() -> None:
    line = "http-request set-header Host %[capture.req.hdr(0)]"
    found = frontend(
        "declare capture request len 9", "http-request capture req.hdr(Host) id 0", line, "default_backend a"
    )
    assert verdict_of(found, line)[0] is Verdict.MAPPED
