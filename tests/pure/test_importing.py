"""Reading haproxy.cfg: words, sections, conditions, routes; and that no line is ever lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apps.definitions.reading.documents import read_object
from apps.importing.context import PRIVATE
from apps.importing.contract import Import
from apps.importing.formats import FORMATS
from apps.importing.haproxy.criteria.samples import Sample, parse_sample
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.haproxy.text.words import Words
from apps.importing.logic.regexes import as_pattern, as_texts
from apps.importing.options import ImportOptions
from apps.importing.telling import report
from apps.importing.verdicts import Verdict

CORPUS = Path(__file__).resolve().parents[1] / "import" / "corpus"
FILES = sorted(CORPUS.glob("*.cfg"))
BESIDE = {str(path): path.read_text() for path in (CORPUS / "files").iterdir()}
DEFAULTS = "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
BACKENDS = "".join(f"backend {name}\n server s 10.0.0.{at}:80\n" for at, name in enumerate("abcd", 1))


def read(text: str, files: dict[str, str] | None = None, **options: Any) -> Import:
    return read_haproxy(text, files or {}, ImportOptions(**options))


@cache
def corpus(path: Path) -> Import:
    """A file of the corpus, read once."""
    return read(path.read_text(), BESIDE)


def frontend(*lines: str, bind: str = "bind :80", **options: Any) -> Import:
    body = "".join(f" {line}\n" for line in (bind, *lines))
    return read(f"{DEFAULTS}frontend fe\n{body}{BACKENDS}", **options)


def routes(found: Import) -> list[tuple[Any, ...]]:
    """Hostname, kind and text of the path, further conditions, and where it leads."""
    shown = []
    for document in found.documents:
        if document["kind"] == "Route":
            spec = document["spec"]
            action = spec["action"]
            target = action["pools"][0]["pool"] if "pools" in action else action.get("redirect") or action
            more = {name: spec[name] for name in ("methods", "headers", "cookies", "query", "scheme") if name in spec}
            shown.append((spec["hostname"], spec.get("path_kind", "prefix"), spec.get("path", "/"), more, target))
    return shown


def verdict_of(found: Import, text: str) -> tuple[Verdict, str]:
    (line,) = [each for each in found.report if each.text == text]
    return line.verdict, " ".join(line.reasons)


def spec_of(found: Import, kind: str, name: str) -> dict[str, Any]:
    (document,) = [each for each in found.documents if (each["kind"], each["name"]) == (kind, name)]
    spec: dict[str, Any] = document["spec"]
    return spec


def rules_of(found: Import, route: dict[str, Any]) -> dict[str, Any]:
    """A route's own rules, or those of its policy."""
    if "policies" in route:
        rules: dict[str, Any] = spec_of(found, "Policy", route["policies"][0])["rules"]
        return rules
    own: dict[str, Any] = route.get("rules", {})
    return own


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("acl x path /a # a comment", ["acl", "x", "path", "/a"]),
        (r"acl x hdr(a) two\ words", ["acl", "x", "hdr(a)", "two words"]),
        (r"a \# \" \' \\ \x41", ["a", "#", '"', "'", "\\", "A"]),
        ("a 'single # $X \\n' b", ["a", "single # $X \\n", "b"]),
        ('a "x ${X} $X ${Y-z} \\$X \\"q\\""', ["a", 'x 1 1 z $X "q"']),
        ("a $X ''", ["a", "$X", ""]),
        ("   # nothing", []),
    ],
)
def test_a_line_is_divided_as_haproxy_divides_it(text: str, words: list[str]) -> None:
    assert Words(text, {"X": "1"}).found == words


def test_a_quote_without_end_and_an_unknown_variable_are_said() -> None:
    assert Words("a 'b", {}).open_quote
    assert Words('a "${NOBODY}"', {}).unknown == ["NOBODY"]


def test_samples_have_arguments_and_converters() -> None:
    assert parse_sample("req.hdr(host),lower,field(1,:)") == Sample(
        "req.hdr", ("host",), (("lower", ()), ("field", ("1", ":")))
    )
    assert parse_sample("path,regsub(\"^/a(b),\",'x,y',g)") is not None
    assert parse_sample("req.hdr(host") is None


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("^/api(/|$)", [("beg", "/api/"), ("str", "/api")]),
        ("^/(a|b)/", [("beg", "/a/"), ("beg", "/b/")]),
        (r"\.php$", [("end", ".php")]),
        (r"^(www\.)?example\.com$", [("str", "www.example.com"), ("str", "example.com")]),
        ("^/a/.*/b$", None),
        ("^/[0-9]+$", None),
    ],
)
def test_expressions_that_stand_for_few_texts_become_those(expression: str, texts: Any) -> None:
    assert as_texts(expression) == texts


def test_other_expressions_become_patterns_of_the_whole_text() -> None:
    assert as_pattern(r"^/u/[0-9]+/") == r"/u/[0-9]+/.*"
    assert as_pattern(r"(?=x)y") is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_of_the_corpus_has_one_verdict_and_every_object_is_valid(path: Path) -> None:
    text, found = path.read_text(), corpus(path)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if Words(line, {}).found]
    assert [line.number for line in found.report] == lines
    for line in found.report:
        assert line.verdict is Verdict.MAPPED or line.reasons, f"{line.number} {line.text}"
    for document in found.documents:
        read_object(document)
    assert len({(each["kind"], each["name"]) for each in found.documents}) == len(found.documents)


# What real files have most often (and what they have seldom, but always matters), as it looks in their lines.
FEATURES = {
    "check": r"server .* check", "option httpchk": r"option httpchk", "expected answers": r"http-check expect",
    "X-Forwarded-For": r"option forwardfor", "tcp": r"mode +tcp", "TLS": r"bind .* ssl", "HTTP/2": r"alpn h2",
    "choice by condition": r"use_backend .* if", "to https": r"redirect scheme https",
    "other redirects": r"redirect (prefix|location|code)",
    "headers of requests": r"http-request (set|add)-header", "headers of responses": r"http-response (set|add)-header",
    "HSTS": r"Strict-Transport", "host of the server": r"set-header Host", "error pages": r"errorfile|http-error",
    "stick-tables": r"stick-table", "ACME": r"well-known/acme", "variables": r"set-var", "networks": r"\bsrc\b [0-9]",
    "cookies": r"^ *cookie ", "backup": r"server .* backup", "compression": r"compression algo", "SNI": r"ssl_sni",
    "checks by protocol": r"(mysql|pgsql|redis|ldap|smtp)-?ch", "send-proxy": r"send-proxy", "minconn": r"minconn",
    "fullconn": r"fullconn", "maxconn of listeners": r"^ *maxconn", "ranges of statuses": r"rstatus|status [0-9]+[-,]",
    "Lua": r"lua", "tarpit": r"tarpit|silent-drop", "headers by part": r"hdr_(sub|reg)|-m (sub|reg)",
    "queries": r"urlp|url_param", "condition by cookie": r"cook\(", "passwords": r"http_auth", "maps": r"map\(|map_",
    "another port of checks": r"check port", "servers that are up": r"nbsrv", "agents": r"agent-check",
    "fixed answers": r"http-request return", "IPv6": r"bind (:::|\[::)", "port ranges": r"bind .*:[0-9]+-[0-9]+",
    "methods": r"\bmethod [A-Z]", "patterns": r"path_reg|url_reg|-m reg", "endings": r"path_end",
    "folders": r"path_dir|path_sub",
    "retries": r"retry-on|retries", "words of 1.x": r"^ *(req|rsp)[a-z]+ ", "environment": r'\$\{?[A-Z]',
    "variables of names": r"use_backend %\[", "statistics": r"stats (uri|enable)", "weights": r"weight [0-9]",
    "hashes": r"hash-type|balance (uri|hdr)", "source": r"balance +source|stick on src", "tunnels": r"timeout tunnel",
    "moved paths": r"replace-path|set-path", "named defaults": r"^(defaults|frontend|backend) \S+ from",
    "resolvers": r"^resolvers", "slow start": r"slowstart", "keep-alive": r"http-(keep-alive|server-close)",
}  # fmt: skip


def test_each_feature_of_real_files_is_in_three_files_of_the_corpus() -> None:
    texts = [path.read_text() for path in FILES]
    counts = {name: sum(re.search(each, text, re.MULTILINE) is not None for text in texts)
              for name, each in FEATURES.items()}  # fmt: skip
    assert len(FILES) >= 60
    assert {name: count for name, count in counts.items() if count < 3} == {}


def test_most_lines_of_the_corpus_are_possible() -> None:
    counts = Counter(line.verdict for path in FILES for line in corpus(path).report)
    possible = sum(all(line.verdict is not Verdict.NOT_POSSIBLE for line in corpus(path).report) for path in FILES)
    print(dict(counts), f"{possible} of {len(FILES)} files without a line that is not possible")
    assert possible >= 0.7 * len(FILES)


def positions(text: str) -> Iterator[int]:
    """Some lines of a file after which another one can stand."""
    count = len(text.splitlines())
    yield from sorted({count // 3, count // 2, 2 * count // 3, count})


@pytest.mark.parametrize("path", FILES[::4], ids=lambda path: path.stem)
def test_a_line_that_nobody_knows_is_reported_wherever_it_stands(path: Path) -> None:
    lines = path.read_text().splitlines()
    for at in positions(path.read_text()):
        changed = [*lines[:at], "    frobnicate 17 -f nothing", *lines[at:]]
        found = {line.number: line for line in read("\n".join(changed), BESIDE).report}
        line = found[at + 1]
        known_section = line.section.split(" ")[0] in ("frontend", "backend", "listen", "defaults", "global")
        assert line.text == "frobnicate 17 -f nothing"
        assert not known_section or line.verdict in (Verdict.NOT_POSSIBLE, Verdict.DEAD)


@pytest.mark.parametrize("path", FILES[1::4], ids=lambda path: path.stem)
def test_without_one_of_its_lines_a_file_still_reports_all_others(path: Path) -> None:
    lines = path.read_text().splitlines()
    for at in positions(path.read_text()):
        left = [*lines[: at - 1], *lines[at:]]
        wanted = [number for number, line in enumerate(left, 1) if Words(line, {}).found]
        assert [line.number for line in read("\n".join(left), BESIDE).report] == wanted


def test_the_first_of_several_rules_decides() -> None:
    found = frontend("use_backend a if { path_end .png }", "use_backend b if { path_beg /api/ }", "default_backend c")
    assert routes(found) == [
        ("*", "exact", "/api", {}, "c"),
        ("*", "regex", ".*\\.png", {}, "a"),
        ("*", "regex", "/api(/.*)?", {}, "b"),
        ("*", "prefix", "/", {}, "c"),
    ]


def test_hosts_of_a_rule_get_all_that_other_rules_say_of_any_host() -> None:
    found = frontend(
        "use_backend a if { path /up }", "use_backend b if { hdr(host) -i x.example.com }", "default_backend c"
    )
    assert routes(found) == [
        ("*", "exact", "/up", {}, "a"),
        ("*", "prefix", "/", {}, "c"),
        ("x.example.com", "exact", "/up", {}, "a"),
        ("x.example.com", "prefix", "/", {}, "b"),
    ]


def test_negation_and_alternatives_are_solved() -> None:
    found = frontend(
        "acl get method GET", "acl get method HEAD", "acl token req.hdr(X-Token) -m found",
        "use_backend a if get !token or { req.cook(beta) yes }", "default_backend b",
    )  # fmt: skip
    beta = {"cookies": [{"name": "beta", "match": "equals", "value": "yes"}]}
    token = {"headers": [{"name": "x-token", "match": "present"}]}
    shown = routes(found)
    assert ("*", "prefix", "/", {"methods": ["GET"]}, "a") in shown
    assert ("*", "prefix", "/", {"methods": ["GET"]} | token, "b") in shown
    assert ("*", "prefix", "/", beta, "a") in shown
    assert shown[-1] == ("*", "prefix", "/", {}, "b")


def test_https_is_where_http_requests_are_sent() -> None:
    found = frontend("redirect scheme https code 301 if !{ ssl_fc }", "default_backend a",
                     "bind :443 ssl crt /x/site.pem")  # fmt: skip
    assert routes(found) == [
        ("*", "prefix", "/", {"scheme": "https"}, "a"),
        ("*", "prefix", "/", {"scheme": "http"}, {"code": 301, "keep_query": True, "scheme": "https"}),
    ]
    assert found.needs == ("The certificate /x/site.pem (--certificate /x/site.pem=NAME).",)


def test_a_question_that_no_route_asks_takes_its_rule_out_and_is_said() -> None:
    line = "redirect scheme https if !{ hdr(X-Forwarded-Host) -i www.example.org }"
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.NOT_POSSIBLE
    assert routes(found) == [("*", "prefix", "/", {}, "a")]


def test_a_scheme_that_a_proxy_in_front_names_is_that_of_routes_and_the_proxy_is_trusted() -> None:
    line = "redirect scheme https if !{ hdr(X-Forwarded-Proto) -i https }"
    found = frontend(line, "default_backend a")
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT
    assert routes(found) == [
        ("*", "prefix", "/", {"scheme": "https"}, "a"),
        ("*", "prefix", "/", {"scheme": "http"}, {"code": 302, "keep_query": True, "scheme": "https"}),
    ]
    [front] = [each["spec"] for each in found.documents if each["kind"] == "LoadBalancer"]
    assert front["listeners"][0]["client_address"] == {"forwarded_from": list(PRIVATE)}


def test_networks_that_are_kept_out_become_a_list() -> None:
    found = frontend("acl office src 192.0.2.0/24", "http-request deny if !office { path_beg /admin }",
                     "default_backend a")  # fmt: skip
    assert spec_of(found, "NetworkList", "office") == {"entries": [{"network": "192.0.2.0/24"}]}
    rules = [rules_of(found, each["spec"]) for each in found.documents if each["kind"] == "Route"]
    assert {"access": {"allow": ["office"]}} in rules
    assert {} in rules


def test_limits_of_requests_become_policies() -> None:
    found = frontend(
        "stick-table type ip size 1m expire 1m store http_req_rate(1m)", "http-request track-sc0 src",
        "http-request deny deny_status 429 if { sc_http_req_rate(0) gt 60 }", "default_backend a",
    )  # fmt: skip
    (route,) = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    assert route["rules"] == {"client_limit": {"requests": 60, "per": "minute"}}


def test_paths_are_rewritten_by_prefix() -> None:
    found = read(
        f"{DEFAULTS}frontend fe\n bind :80\n use_backend api if {{ path_beg /api/ }}\n"
        "backend api\n http-request replace-path /api/(.*) /\\1\n server s 10.0.0.1:80\n"
    )
    (route,) = [
        each["spec"] for each in found.documents if each["kind"] == "Route" and each["spec"].get("path") == "/api"
        and each["spec"]["path_kind"] == "prefix"
    ]  # fmt: skip
    assert route["prefix_rewrite"] == "/"


def test_loopback_is_asked_for_and_taken_from_the_table() -> None:
    text = f"{DEFAULTS}listen x\n bind :80\n server s 127.0.0.1:8080\n"
    assert read(text).needs == ("Where the server 127.0.0.1:8080 is (--map-servers 127.0.0.1:8080=HOST:PORT).",)
    moved = read(text, servers={"127.0.0.1:8080": "app-1:8080"})
    assert moved.needs == ()
    assert spec_of(moved, "Pool", "x")["backends"][0]["servers"][0]["address"] == "app-1"
    assert read(text, local_development=True).needs == ()


def test_a_hash_is_no_password() -> None:
    text = (
        f"userlist staff\n user alice password $6$abc$def\n{DEFAULTS}frontend fe\n bind :80\n"
        f" http-request auth unless {{ http_auth(staff) }}\n default_backend a\n{BACKENDS}"
    )
    assert read(text).needs == ("The password of user alice (--password alice=…).",)
    said = read(text, passwords={"alice": "a long password"})
    (route,) = [each["spec"] for each in said.documents if each["kind"] == "Route"]
    assert route["rules"] == {"basic_auth": {"users": {"alice": "a long password"}}}


def test_a_map_is_read_entry_by_entry() -> None:
    line = "use_backend %[req.hdr(host),lower,map(/etc/hosts.map,c)]"
    found = read(f"{DEFAULTS}frontend fe\n bind :80\n {line}\n{BACKENDS}", {"old/hosts.map": "x.example.com a\n"})
    assert routes(found) == [("*", "prefix", "/", {}, "c"), ("x.example.com", "prefix", "/", {}, "a")]


def test_what_nothing_uses_is_dead() -> None:
    found = frontend("acl lonely path /x", "default_backend a", "use_backend b if FALSE")
    assert verdict_of(found, "acl lonely path /x")[0] is Verdict.DEAD
    assert verdict_of(found, "backend d")[0] is Verdict.DEAD


def test_the_report_is_told_with_counts() -> None:
    told = list(report(read((CORPUS / "22-typos.cfg").read_text()), FORMATS["haproxy"].everywhere))
    assert told[0] == "Not possible:"
    assert told[told.index("Different everywhere:") + 2].endswith("in the name of a header is answered 403.")
    assert any("did you mean maxconn?" in line for line in told)
    assert told[-1].startswith("18 lines: 7 not possible, ")


def test_equal_files_give_equal_objects() -> None:
    text = (CORPUS / "16-many-acls.cfg").read_text()
    assert read(text).documents == read(text).documents


def test_classes_of_an_expression_take_both_cases_where_it_does() -> None:
    assert as_pattern("^/c/[a-z0-9]$", ignore_case=True) == "/[Cc]/[a-z0-9A-Z]"
    assert as_pattern(r"^[^x\d-]$", ignore_case=True) == r"[^x\dX-]"


@pytest.mark.parametrize(
    "expression", [r"^.+\.(css|js)$", r"\.(css|js)v[0-9]$", r"[a-z]+\.(css|js)", r"^.+\.(?:css|js)$"]
)
def test_a_pattern_that_begins_with_any_sign_is_a_route(expression: str) -> None:
    """The example of `.+x` is no path: its rule was called dead, and its requests went to another pool."""
    found = frontend(f"use_backend b if {{ path_reg {expression} }}", "default_backend a")
    assert {each[-1] for each in routes(found)} == {"a", "b"}
    assert verdict_of(found, f"use_backend b if {{ path_reg {expression} }}")[0] is Verdict.MAPPED


def test_names_of_routes_say_what_a_condition_asks_and_not_the_value_that_may_be_a_secret() -> None:
    found = frontend(
        "use_backend b if { req.hdr(X-Api-Key) s3cret-one } METH_POST",
        "use_backend c if { req.hdr(X-Api-Key) s3cret-two } METH_POST",
        "use_backend d if { req.cook(session) s3cret-three } || { url_param(token) s3cret-four }",
        "default_backend a",
    )
    names = [each["name"] for each in found.documents if each["kind"] == "Route"]
    assert not any("s3cret" in name for name in names)
    assert len(set(names)) == len(names)
    assert {"fe-any-method-post-x-api-key", "fe-any-session", "fe-any-token", "fe-any"} <= {*names}
    assert "s3cret-four" in str(found.documents)
