"""Reading haproxy.cfg: headers that lines of any version change, remove or replace, and what of it has no place."""

from __future__ import annotations

from typing import Any

import pytest

from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import frontend, routes, rules_of, spec_of, verdict_of


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


def test_a_header_of_json_is_set_as_it_is() -> None:
    line = (
        r'''http-response set-header Report-To "{\"group\":\"nel\",\"endpoints\":[{\"url\":\"https://a.example\"}]}"'''
    )
    found = frontend(line, "default_backend a")
    said = '{"group":"nel","endpoints":[{"url":"https://a.example"}]}'
    assert rules(found)["response_headers"] == {"set": {"Report-To": said}}
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


@pytest.mark.parametrize(
    "line",
    [
        r"http-request replace-header Host ([^:]+) \1",
        r"http-request replace-header Host ^(.*):[0-9]+$ \1",
        r"http-request replace-header Host ^([^:]*)(:.*)?$ \1",
        "http-request set-header Host %[req.hdr(host),field(1,:)]",
        "http-request set-header Host %[hdr(Host),lower,host_only]",
    ],
)
def test_a_host_without_its_port_has_it_here_and_that_is_said(line: str) -> None:
    verdict, why = verdict_of(frontend(line, "default_backend a"), line)
    assert (verdict, "with a port" in why) == (Verdict.DIFFERENT, True)


@pytest.mark.parametrize("expression", [r"^(.*)-old$", r"(www)\.(.*)"])
def test_a_host_that_is_cut_otherwise_has_no_place(expression: str) -> None:
    line = rf"http-request replace-header Host {expression} \1"
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is Verdict.NOT_POSSIBLE


def test_servers_get_the_host_that_was_captured() -> None:
    line = "http-request set-header Host %[capture.req.hdr(0)]"
    found = frontend(
        "declare capture request len 9", "http-request capture req.hdr(Host) id 0", line, "default_backend a"
    )
    assert verdict_of(found, line)[0] is Verdict.MAPPED


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("http-response add-header X-Via %[env(NODE)]", {"X-Via": "lb1"}),
        ("http-request set-header X-Cipher %[ssl_fc_cipher]", {"X-Cipher": "{tls_cipher}"}),
        ("http-request set-header X-Old 1 if { env(OLD) -m found }", {}),
        ("http-request set-header X-Node 1 if { env(NODE) -m str lb1 lb2 }", {"X-Node": "1"}),
        ("http-request set-header X-Number 1 if { env(NUMBER) -m int gt 2 }", {"X-Number": "1"}),
        ("http-request set-header X-Number 1 if { env(NUMBER) lt 2 }", {}),
    ],
)
def test_what_the_environment_says_is_known(line: str, said: dict[str, str]) -> None:
    found = frontend(line, "default_backend a", environment={"NODE": "lb1", "NUMBER": "3"})
    rules = [each["spec"]["rules"] for each in found.documents if "rules" in each["spec"]]
    assert [pair for each in rules for block in each.values() for of in block.values() for pair in of.items()] == [
        *said.items()
    ]
    assert verdict_of(found, line)[0] is (Verdict.DIFFERENT if "cipher" in line or "OLD" in line else Verdict.MAPPED)


def test_a_variable_of_the_process_that_nobody_gave_is_asked_for() -> None:
    line = "http-response add-header X-Via %[env(NODE)]"
    found = frontend(line, "default_backend a")
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.DIFFERENT
    assert "The variable NODE is not set; give it with --env NODE=…." in why
    assert "The variable NODE (--env NODE=…)." in found.needs


def test_an_empty_header_is_one_that_is_there() -> None:
    line = "http-request deny if { hdr(Referer) -m len 0 }"
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.MAPPED
    specs = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    asked = [
        ([each["match"] for each in spec.get("headers", [])], "fixed_response" in spec["action"]) for spec in specs
    ]
    assert asked == [(["present", "regex"], False), (["present"], True), ([], False)]


@pytest.mark.parametrize(
    ("line", "refuses"),
    [
        ("http-request deny if { hdr(api_key) -m found }", False),
        ("http-request deny unless { hdr(api_key) secret }", True),
        ("http-request deny if { hdr_cnt(api_key) gt 0 }", False),
    ],
)
def test_a_header_with_an_underscore_comes_with_no_request_and_that_is_said(line: str, refuses: bool) -> None:
    found = frontend(line, "default_backend a")
    assert ("fixed_response" in routes(found)[-1][4]) is refuses
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.DIFFERENT
    assert "answered 403" in why


def test_names_of_query_parameters_are_compared_as_clients_write_them() -> None:
    found = frontend("use_backend a if { urlp(ids%5B%5D) x }", "default_backend b")
    assert {"query": [{"name": "ids%5B%5D", "match": "equals", "value": "x"}]} in [route[3] for route in routes(found)]
    assert {line.verdict for line in found.report if line.section == "frontend fe"} == {Verdict.MAPPED}


NO_FRAMES = ("X-Frame-Options", "DENY")
TYPED = {"add": {"X-Kind": "page"}, "types": ["text/html"]}


@pytest.mark.parametrize(
    ("condition", "block", "said"),
    [
        ("unless { res.hdr(X-Frame-Options) -m found }", "response_headers", {"set_if_absent": dict([NO_FRAMES])}),
        ("if { res.hdr_cnt(x-frame-options) eq 0 }", "response_headers", {"set_if_absent": dict([NO_FRAMES])}),
        ("if { res.hdr(Content-Type) -m beg text/html }", "typed_headers", {"types": ["text/html"]}),
        ("if { res.hdr(content-type) -m reg ^(text/html|text/plain) }", "typed_headers",
         {"types": ["text/html", "text/plain"]}),
        ("if { shdr_beg(content-type) text/css }", "typed_headers", {"types": ["text/css"]}),
    ],
)  # fmt: skip
def test_headers_of_what_the_server_says_are_said(condition: str, block: str, said: dict[str, Any]) -> None:
    line = f"http-response set-header {' '.join(NO_FRAMES)} {condition}"
    found = frontend(line, "default_backend a")
    made = said if block == "response_headers" else said | {"set": dict([NO_FRAMES])}
    assert rules(found) == {block: made}
    assert verdict_of(found, line)[0] is Verdict.MAPPED


@pytest.mark.parametrize("fetch", ["%s", "%[srv_name]"])
def test_clients_are_told_the_server_by_the_id_it_has_here(fetch: str) -> None:
    line = f"http-response set-header X-Server {fetch}"
    found = frontend(line, "default_backend a")
    assert rules(found) == {"response_headers": {"set": {"X-Server": "{server}"}}}
    assert verdict_of(found, line) == (Verdict.DIFFERENT, "Clients are told the id that the server has here.")


def test_no_server_is_known_while_a_request_is_changed() -> None:
    line = "http-request set-header X-Server %[srv_name]"
    assert verdict_of(frontend(line, "default_backend a"), line)[0] is Verdict.NOT_POSSIBLE


def test_a_whole_content_type_is_a_beginning_here_and_that_is_said() -> None:
    line = "http-response add-header X-Kind page if { res.hdr(Content-Type) text/html }"
    found = frontend(line, "default_backend a")
    assert rules(found) == {"typed_headers": TYPED}
    verdict, why = verdict_of(found, line)
    assert verdict is Verdict.DIFFERENT
    assert "begins with the type" in why


def test_what_else_is_asked_stays_a_condition() -> None:
    line = "http-response add-header X-Kind page if { res.hdr(Content-Type) -m beg text/html } { ssl_fc }"
    assert "typed_headers" not in rules(frontend(line, "default_backend a"))


@pytest.mark.parametrize(
    "line",
    [
        "http-response set-header X-A 1 if { res.hdr(X-B) -m found }",
        "http-response set-header X-A 1 unless { res.hdr(X-B) -m found }",
        "http-response set-header X-A 1 unless { res.hdr(Content-Type) -m beg text/html }",
        "http-response set-header X-A 1 if { res.hdr(Content-Type) -m sub html }",
        "http-response set-header X-A 1 if { res.hdr_cnt(X-A) gt 1 }",
    ],
)
def test_other_questions_about_responses_have_no_place(line: str) -> None:
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE
    assert rules(found) == {}


def test_a_second_list_of_media_types_has_no_place() -> None:
    first = "http-response add-header X-Kind page if { res.hdr(Content-Type) -m beg text/html }"
    second = "http-response add-header X-Kind style if { res.hdr(Content-Type) -m beg text/css }"
    found = frontend(first, second, "default_backend a")
    assert rules(found) == {"typed_headers": TYPED}
    assert verdict_of(found, second)[0] is Verdict.NOT_POSSIBLE
