"""Reading haproxy.cfg: a part that cannot be brought is said at its line, and all others are brought."""

from __future__ import annotations

from typing import Any

import pytest

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.verdicts import Verdict
from tests.pure.test_importing import BACKENDS, DEFAULTS, frontend, read, spec_of, verdict_of
from tests.pure.test_importing_effects import TWO, listeners_of
from tests.pure.test_importing_sections import TCP

BOTH = "bind :80\n bind :443 ssl crt /a.pem"


def two(first: str, second: str, **options: Any) -> Import:
    """Two sections with a port each, and two backends."""
    return read(
        f"{DEFAULTS}frontend one\n bind {first}\n default_backend a\n"
        f"frontend two\n bind {second}\n bind :81\n default_backend b\n{TWO}",
        **options,
    )


def ports(found: Import, name: str) -> list[int]:
    return [each["port"] for each in spec_of(found, "LoadBalancer", name)["listeners"]]


def answers(found: Import, hostname: str) -> list[tuple[str | None, dict[str, Any]]]:
    """Scheme and action of each route of a hostname."""
    specs = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    return [(each.get("scheme"), each["action"]) for each in specs if each["hostname"] == hostname]


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (":80", "*:80", "HAProxy shares the connections out between both"),
        ("192.0.2.1:80", "192.0.2.1:80", "HAProxy shares the connections out between both"),
        ("192.0.2.1:80", "192.0.2.2:80", "Say --address 192.0.2.2=STATIC_IP to give this section"),
        ("192.0.2.1:80", "*:80", "Say --address 192.0.2.1=STATIC_IP to give that section"),
        ("*:80 interface a", "*:80 interface b", "Listeners are bound to addresses alone"),
    ],
)
def test_a_port_that_another_section_has_is_lost_alone(first: str, second: str, why: str) -> None:
    found = two(first, second)
    verdict, said = verdict_of(found, f"bind {second}" if first != second else "bind :81")
    if first != second:
        assert verdict is Verdict.NOT_POSSIBLE
    else:
        said = " ".join(reason for line in found.report if line.number == 10 for reason in line.reasons)
    assert why in said
    assert not found.needs
    assert (ports(found, "one"), ports(found, "two")) == ([80], [81])


def test_sections_whose_addresses_have_static_ips_keep_their_port() -> None:
    found = two("192.0.2.1:80", "192.0.2.2:80", addresses={"192.0.2.2": "front-2"})
    assert verdict_of(found, "bind 192.0.2.2:80")[0] is Verdict.MAPPED
    assert (ports(found, "one"), ports(found, "two")) == ([80], [80, 81])
    same = two("192.0.2.1:80", "192.0.2.2:80", addresses={"192.0.2.1": "front", "192.0.2.2": "front"})
    assert "has the static IP front as well" in verdict_of(same, "bind 192.0.2.2:80")[1]


def test_a_section_without_a_port_of_its_own_is_not_possible_and_its_lines_are_not_called_mapped() -> None:
    found = read(
        f"{DEFAULTS}frontend one\n bind :80\n default_backend a\n"
        f"frontend two\n bind *:80\n option forwardfor\n default_backend b\n{TWO}"
    )
    assert verdict_of(found, "frontend two")[0] is Verdict.NOT_POSSIBLE
    for line in ("option forwardfor", "default_backend b", "backend b"):
        assert verdict_of(found, line)[0] is Verdict.DEAD, line
    assert [each["name"] for each in found.documents if each["kind"] == "LoadBalancer"] == ["one"]


def test_a_section_that_makes_no_listener_leaves_its_port_to_others() -> None:
    found = read(f"{TCP}frontend health\n bind :80\nfrontend two\n bind :80\n default_backend a\n{TWO}")
    assert ports(found, "two") == [80]


def test_two_addresses_of_one_section_are_one_listener_with_the_certificates_of_both() -> None:
    found = frontend(
        "default_backend a", bind="bind 192.0.2.1:443 ssl crt /a.pem alpn h2\n bind 192.0.2.2:443 ssl crt /b.pem"
    )
    (listener,) = listeners_of(found)
    assert (listener["certificates"], listener["default_certificate"]) == (["a", "b"], "a")
    why = verdict_of(found, "bind 192.0.2.2:443 ssl crt /b.pem")[1]
    for part in ("for 192.0.2.2 say --address", "gets the certificate of line", "has the options of line"):
        assert part in why


@pytest.mark.parametrize("option", ["ssl crt /a.pem", "accept-proxy"])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_line_that_lets_other_clients_in_is_no_part_of_the_listener(option: str, is_first: bool) -> None:
    lines = ["bind 192.0.2.1:80", "bind 192.0.2.2:80"]
    lines[0 if is_first else 1] += f" {option}"
    found = frontend("default_backend a", bind="\n ".join(lines))
    why = "Line 7 is the listener of port 80, and lets other clients in than this line."
    instead = "Say --address 192.0.2.2=STATIC_IP to have both."
    assert verdict_of(found, lines[1]) == (Verdict.NOT_POSSIBLE, f"{why} {instead}")
    (listener,) = listeners_of(found)
    assert ("client_address" in listener or listener["protocol"] == "https") is is_first


def test_who_must_show_a_certificate_at_one_address_must_not_lose_that_to_another() -> None:
    shown = "bind 192.0.2.2:443 ssl crt /a.pem verify required ca-file /ca.pem"
    found = frontend("default_backend a", bind=f"bind 192.0.2.1:443 ssl crt /a.pem\n {shown}")
    assert verdict_of(found, shown)[0] is Verdict.NOT_POSSIBLE


def test_a_port_with_tls_and_without_a_certificate_is_not_possible() -> None:
    for text in (f"{DEFAULTS}frontend fe\n bind :80\n", f"{TCP}frontend fe\n bind :80\n"):
        found = read(f"{text} bind :443 ssl\n default_backend a\n{TWO}")
        assert verdict_of(found, "bind :443 ssl")[0] is Verdict.NOT_POSSIBLE
        assert ports(found, "fe") == [80]


def test_a_second_frontend_of_a_name_takes_no_place_of_the_first() -> None:
    found = read(
        f"{DEFAULTS}frontend fe\n bind :80\n default_backend a\nfrontend fe\n bind :81\n default_backend b\n{TWO}"
    )
    assert (ports(found, "fe"), ports(found, "fe-more")) == ([80], [81])
    pools = {each["spec"]["load_balancer"]: each["spec"]["action"]["pools"][0]["pool"]
             for each in found.documents if each["kind"] == "Route"}  # fmt: skip
    assert pools == {"fe": "a", "fe-more": "b"}


def test_a_second_section_of_a_name_gets_no_requests_of_the_first() -> None:
    text = "listen x\n bind :{0}\n server s{0} 10.0.0.{0}:80\n"
    found = read(f"{DEFAULTS}{text.format(81)}{text.format(82)}")
    assert [line.verdict for line in found.report if line.text == "listen x"] == [Verdict.MAPPED, Verdict.NOT_POSSIBLE]
    assert verdict_of(found, "server s82 10.0.0.82:80")[0] is Verdict.DEAD
    assert [each["name"] for each in found.documents if each["kind"] == "LoadBalancer"] == ["x"]


def test_a_backend_that_is_missing_takes_only_its_own_connections_away() -> None:
    rest = "frontend fe\n bind :443\n use_backend {} if {{ req.ssl_sni a.example }}\n default_backend {}\n"
    named = read(f"{TCP}{rest.format('gone', 'a')}{TWO}")
    assert verdict_of(named, "use_backend gone if { req.ssl_sni a.example }")[0] is Verdict.NOT_POSSIBLE
    assert (listeners_of(named)[0]["default_pool"], "sni_routes" in listeners_of(named)[0]) == ("a", False)
    closed = read(f"{TCP}{rest.format('a', 'gone')}{TWO}")
    assert verdict_of(closed, "default_backend gone")[0] is Verdict.NOT_POSSIBLE
    assert listeners_of(closed)[0]["sni_routes"] == [{"hostname": "a.example", "pool": "a"}]
    assert "default_pool" not in listeners_of(closed)[0]
    nothing = read(f"{TCP}frontend fe\n bind :443\n default_backend gone\nlisten l\n bind :1\n server s 10.0.0.1:1\n")
    assert [each["name"] for each in nothing.documents if each["kind"] == "LoadBalancer"] == ["l"]


def test_a_backend_that_a_map_names_and_nobody_has_is_the_default_one() -> None:
    rule = "use_backend %[req.hdr(host),lower,map(/hosts.map)]"
    files = {"/hosts.map": "a.example a\nlost.example gone\n"}
    found = read(f"{DEFAULTS}frontend fe\n bind :80\n {rule}\n default_backend b\n{BACKENDS}", files)
    assert answers(found, "a.example") == [(None, {"pools": [{"pool": "a"}]})]
    assert answers(found, "*") == [(None, {"pools": [{"pool": "b"}]})]
    assert answers(found, "lost.example") == []


def test_a_redirect_that_leads_to_itself_is_answered_and_said_and_nothing_else_is_lost() -> None:
    line = "redirect scheme https if { hdr(host) a.example }"
    found = frontend(line, "default_backend a", bind="bind :443 ssl crt /a.pem")
    ((_, answer),) = answers(found, "a.example")
    assert answer["fixed_response"]["status"] == 404
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT
    assert answers(found, "*") == [(None, {"pools": [{"pool": "a"}]})]


def test_a_redirect_that_leads_to_itself_on_one_scheme_still_leads_there_on_the_other() -> None:
    line = "redirect location https://a.example if { hdr(host) a.example }"
    found = frontend(line, "default_backend a", bind=BOTH)
    by_scheme = dict(answers(found, "a.example"))
    assert by_scheme[None]["redirect"]["scheme"] == "https"
    assert by_scheme["https"]["fixed_response"]["status"] == 404
    assert "a.example/ leads to itself on https" in verdict_of(found, line)[1]


def test_a_site_to_which_everybody_is_sent_is_not_sent_to_itself() -> None:
    found = frontend("redirect location https://other.example/x", bind=BOTH)
    ((scheme, answer),) = answers(found, "other.example")
    assert (scheme, answer["fixed_response"]["status"]) == ("https", 404)
    assert [scheme for scheme, _ in answers(found, "*")] == [None]
    for each in found.documents:
        read_object(each)
    for plain in (
        frontend("redirect location https://other.example/x"),
        frontend("redirect location https://other.example/x if { path /a }", "default_backend a", bind=BOTH),
    ):
        assert {each["spec"]["hostname"] for each in plain.documents if each["kind"] == "Route"} == {"*"}


@pytest.mark.parametrize(
    "rule",
    [
        "set-path %[path,regsub(^/api,,)] if { path_beg /api }",
        "set-uri %[url,regsub(^/api,)] if { path_beg /api }",
        r"replace-path ^/api(/.*)? \1",
        r"replace-path ^/api(.*)$ \1",
        r"replace-uri ^/api(.*) \1",
    ],
)
def test_a_path_that_was_sent_empty_is_said(rule: str) -> None:
    found = frontend(f"http-request {rule}", "default_backend a")
    verdict, why = verdict_of(found, f"http-request {rule}")
    assert verdict is Verdict.DIFFERENT
    assert "HAProxy sends servers an empty path for /api itself" in why


@pytest.mark.parametrize(
    "rule", [r"replace-path ^/api(.*)$ /x\1", r"replace-path ^/api/(.*) /\1", "set-path %[path,regsub(^/api,/x,)]"]
)
def test_a_path_that_stays_one_is_not_called_empty(rule: str) -> None:
    found = frontend(f"http-request {rule}", "default_backend a")
    assert "empty path" not in verdict_of(found, f"http-request {rule}")[1]


def test_a_location_with_two_slashes_is_said() -> None:
    for path in ("%[path]", "%[capture.req.uri]", "%HU"):
        line = f"http-request redirect location https://other.example/{path}"
        assert "one slash" in verdict_of(frontend(line), line)[1]
        plain = f"http-request redirect location https://other.example{path}"
        assert verdict_of(frontend(plain), plain)[0] is Verdict.MAPPED


def test_lines_that_routes_cannot_order_are_those_that_say_so() -> None:
    header = "http-request set-header X-A 1 if { path_dir img }"
    found = frontend(
        "http-request deny if { path_beg /a /b } !{ src 10.0.0.0/8 }",
        header,
        "http-request redirect location /new if { path_end .php }",
        "http-after-response set-header X-Last 1",
        "default_backend a",
    )
    assert "such as /a/img/zz are decided by another line" in verdict_of(found, header)[1]
    assert verdict_of(found, "http-after-response set-header X-Last 1")[0] is Verdict.MAPPED


def test_a_backend_whose_rules_answer_every_request_is_used() -> None:
    found = read(
        f"{DEFAULTS}frontend fe\n bind :80\n use_backend no if {{ path /no }}\n default_backend a\n"
        f"backend no\n http-request deny deny_status 404\n{TWO}"
    )
    assert verdict_of(found, "backend no")[0] is Verdict.MAPPED
    assert verdict_of(found, "backend b")[0] is Verdict.DEAD


def test_a_pattern_that_haproxy_finds_anywhere_in_a_path_is_said() -> None:
    line = r"http-request replace-path /api/(.*) /\1"
    assert "in the middle of a path" in verdict_of(frontend(line, "default_backend a"), line)[1]
    anchored = line.replace("/api", "^/api")
    assert verdict_of(frontend(anchored, "default_backend a"), anchored)[0] is Verdict.MAPPED


def test_authorities_that_only_verify_are_said() -> None:
    line = "bind :443 ssl crt /a.pem verify required ca-file /ca.pem ca-verify-file /root.pem"
    assert "with those of ca-file alone" in verdict_of(frontend("default_backend a", bind=line), line)[1]


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("path,url_dec -m beg /admin", "what is encoded is not found"),
        ("req.cook(a),url_dec x", "what is encoded is not found"),
        ("ssl_fc_sni c.example", "not the name of its TLS connection"),
        ("hdr_ip(x-forwarded-for,-1) 192.0.2.0/24", "as its listener knows it"),
    ],
)
def test_a_question_that_is_asked_of_something_else_is_said(condition: str, why: str) -> None:
    line = f"http-request deny if {{ {condition} }}"
    verdict, said = verdict_of(frontend(line, "default_backend a"), line)
    assert verdict is Verdict.DIFFERENT
    assert why in said


def test_clients_that_a_header_names_are_asked_of_proxies_that_are_believed() -> None:
    rule = "http-request deny unless office"
    found = frontend("acl office hdr_ip(X-Forwarded-For) 10.0.0.0/8", rule, "default_backend a")
    (listener,) = listeners_of(found)
    assert "10.0.0.0/8" in listener["client_address"]["forwarded_from"]
    plain = frontend("acl office src 10.0.0.0/8", rule, "default_backend a")
    assert "client_address" not in listeners_of(plain)[0]
    other = "http-request deny if { hdr_ip(x-gateway) 10.0.0.0/8 }"
    assert verdict_of(frontend(other, "default_backend a"), other)[0] is Verdict.NOT_POSSIBLE


def test_ciphers_of_a_port_are_those_of_the_fleet() -> None:
    line = "bind :443 ssl crt /a.pem ciphers ECDHE"
    found = read(f"{DEFAULTS}frontend fe\n {line}\n default_backend a\n{TWO}", certificates={"/a.pem": "a"})
    assert verdict_of(found, line) == (Verdict.DIFFERENT, "Ciphers and curves are those of the fleet (tls_preset).")


@pytest.mark.parametrize("rule", ["auth realm x unless admins", "deny unless admins"])
def test_a_rule_that_asks_for_a_group_says_that_its_other_users_are_let_in(rule: str) -> None:
    users = "".join(f" user {name} insecure-password longpassword\n" for name in ("alice", "bob"))
    people = f"userlist u\n group a users alice\n{users}"
    text = f"{people}{DEFAULTS}frontend fe\n bind :80\n acl admins http_auth_group(u) a\n http-request {rule}\n"
    said = verdict_of(read(f"{text} default_backend a\n{TWO}"), f"http-request {rule}")[1]
    assert "groups are not told apart" in said
    plain = text.replace("http_auth_group(u) a", "http_auth(u)")
    assert verdict_of(read(f"{plain} default_backend a\n{TWO}"), f"http-request {rule}")[1] != said


def test_every_name_has_the_prefix_once() -> None:
    found = two(":80", ":90", prefix="old-")
    names = [str(each["name"]) for each in found.documents if "name" in each]
    assert names
    assert {name.count("old-") for name in names} == {1}


def test_an_expression_tells_a_prefix_from_what_is_below_it() -> None:
    found = frontend(
        "acl lacks_slash path_reg ^/[^/]*$",
        "http-request redirect location /campus/ if { path_beg /campus } lacks_slash",
        "use_backend b if { path_beg /campus }",
        "default_backend a",
    )
    made = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    kinds = {(each.get("path"), each.get("path_kind")): next(iter(each["action"])) for each in made}
    assert kinds["/campus", "exact"] == "redirect"
    assert kinds["/campus", "prefix"] == "pools"
