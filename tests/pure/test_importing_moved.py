"""Reading haproxy.cfg: rules ask for the path, the host and the headers that rules above them made."""

from __future__ import annotations

import pytest

from apps.importing.verdicts import Verdict
from tests.pure.test_importing import DEFAULTS, frontend, read, routes, rules_of, verdict_of
from tests.pure.test_importing_effects import TWO


@pytest.mark.parametrize(
    ("change", "asked", "path"),
    [
        ("replace-path ^/api/(.*)$ /v1/\\1", "path_beg /v1/", "/api"),
        ("set-path /v1%[path]", "path_beg /v1/users", "/users"),
        ("set-path %[path,regsub(^/old,)]", "path_beg /in", "/old/in"),
        ("set-path %[path,regsub(^/old/api/,/api/)] if { path_beg /old/api/ }", "path_beg /api/in", "/old/api/in"),
        ("set-path /fixed if { path /x }", "path /fixed", "/x"),
        ("replace-path ^/shop/([0-9]+)$ /item/\\1", "path_beg /elsewhere", "/elsewhere"),
    ],
)
def test_a_path_is_asked_for_as_it_was_rewritten(change: str, asked: str, path: str) -> None:
    found = frontend(f"http-request {change}", f"use_backend a if {{ {asked} }}", "default_backend b")
    assert path in [route[2].removesuffix("(/.*)?") for route in routes(found) if route[4] == "a"]
    assert not [line for line in found.report if line.verdict is Verdict.NOT_POSSIBLE]


def test_what_is_not_rewritten_is_asked_for_as_it_came() -> None:
    lines = ("http-request set-path /b%[path] if { path_beg /a }", "use_backend a if { path_beg /c }")
    assert ("*", "prefix", "/c", {}, "a") in routes(frontend(*lines, "default_backend b"))


def test_who_is_let_through_is_not_rewritten() -> None:
    lines = ("http-request allow if { path_beg /pub }", "http-request set-path /in%[path]")
    made = routes(frontend(*lines, "use_backend a if { path_beg /in/pub }", "default_backend b"))
    assert "a" not in [route[4] for route in made]


@pytest.mark.parametrize("kept", ["http-request set-var(txn.was) path", ""])
def test_a_path_that_was_kept_is_asked_for_as_it_came(kept: str) -> None:
    asked = "{ var(txn.was) -m beg /app }" if kept else "{ capture.req.uri -m beg /app }"
    lines = ([kept] if kept else []) + ["http-request set-path /new%[path]", f"use_backend a if {asked}"]
    assert ("*", "prefix", "/app", {}, "a") in routes(frontend(*lines, "default_backend b"))


def test_a_backend_asks_for_the_path_that_its_frontend_made() -> None:
    front = "frontend fe\n bind :80\n http-request set-path /in%[path]\n default_backend a\n"
    text = TWO.replace("backend a\n", "backend a\n http-request deny if { path_beg /in/secret }\n")
    found = read(DEFAULTS + front + text)
    assert [route[2] for route in routes(found) if isinstance(route[4], dict)][:1] == ["/secret"]


def test_changes_of_frontend_and_backend_are_made_one_after_the_other() -> None:
    front = "frontend fe\n bind :80\n http-request replace-path ^/api/(.*)$ /\\1\n default_backend a\n"
    found = read(DEFAULTS + front + TWO.replace("backend a\n", "backend a\n http-request set-path /v2%[path]\n"))
    made = {each["spec"].get("path", "/"): each["spec"] for each in found.documents if each["kind"] == "Route"}
    assert (made["/api"]["prefix_rewrite"], made["/"]["prefix_rewrite"]) == ("/v2", "/v2")


def test_a_prefix_is_put_before_the_paths_of_a_pattern() -> None:
    lines = ("http-request set-path /new%[path] if { path_reg ^/v[0-9]+/ }", "default_backend a")
    found = frontend(*lines)
    (route,) = [each["spec"] for each in found.documents if each["spec"].get("path_kind") == "regex"]
    assert rules_of(found, route)["rewrite"] == {"path_regex": "/(.*)", "path_replacement": "/new/\\1"}


@pytest.mark.parametrize(
    ("change", "asked", "where"),
    [
        ("set-header X-Who bot if { path_beg /bot }", "hdr(X-Who) bot", "/bot"),
        ("del-header X-Debug if { path_beg /x }", "hdr_cnt(X-Debug) eq 0", "/x"),
        ("set-header Host new.example.com if { path_beg /n }", "hdr(host) new.example.com", "/n"),
        ("add-header X-Kind b if { path_beg /k }", "hdr(X-Kind) a b", "/k"),
    ],
)
def test_headers_and_hosts_are_asked_for_as_they_were_written(change: str, asked: str, where: str) -> None:
    found = frontend(f"http-request {change}", f"use_backend a if {{ {asked} }}", "default_backend b")
    assert ("*", "prefix", where, {}, "a") in routes(found)


def test_a_header_that_is_written_from_others_is_not_asked_for() -> None:
    line = "use_backend a if { hdr(X-Of) -m beg x }"
    found = frontend("http-request set-header X-Of %[req.hdr(X-Other)]", line, "default_backend b")
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.NOT_POSSIBLE
    assert "a line above writes this header from others" in why


def test_a_change_of_something_else_keeps_a_condition_of_many_hosts() -> None:
    hosts = "".join(f" acl many hdr(host) h{number}.example.com\n" for number in range(200))
    lines = " http-request set-header X-A 1\n use_backend a if many\n default_backend b\n"
    found = read(f"{DEFAULTS}frontend fe\n bind :80\n{hosts}{lines}{TWO}")
    assert sum(route[4] == "a" for route in routes(found)) == 200
    assert {line.verdict for line in found.report} == {Verdict.MAPPED}
