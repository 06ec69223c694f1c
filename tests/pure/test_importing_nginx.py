"""Reading nginx.conf: which location answers, what servers get, and that no directive is ever lost."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from crossplane.analyzer import DIRECTIVES

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.formats import FORMATS, main_files, recognised
from apps.importing.logic.paths import Key
from apps.importing.nginx.reading import read_nginx
from apps.importing.nginx.text.words import words_of
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict

CORPUS = Path(__file__).resolve().parents[1] / "import" / "nginx"
FILES = sorted(CORPUS.glob("*.conf"))
BESIDE = {str(path): path.read_text() for path in (CORPUS / "files").iterdir()}
UPSTREAMS = "".join(f"upstream {name} {{ server 10.0.0.{at}:80; }}\n" for at, name in enumerate("abcd", 1))


def read(text: str, files: dict[str, str] | None = None, **options: Any) -> Import:
    return read_nginx(text, files or {}, ImportOptions(**options))


@cache
def corpus(path: Path) -> Import:
    """A file of the corpus, read once."""
    return read(path.read_text(), BESIDE)


def server(*lines: str, outside: str = "") -> Import:
    """One server for any host, whose requests keep their Host."""
    body = "\n".join(lines)
    return read(f"http {{\n{UPSTREAMS}{outside}\nserver {{\nproxy_set_header Host $host;\n{body}\n}}\n}}\n")


def routes(found: Import) -> list[dict[str, Any]]:
    return [each["spec"] for each in found.documents if each["kind"] == "Route"]


def specs(found: Import, kind: str) -> list[dict[str, Any]]:
    return [each["spec"] for each in found.documents if each["kind"] == kind]


# As Routing orders them: equal paths, the longest prefix, patterns as they are, and / last.
ORDER = {"exact": 0, "prefix": 1, "regex": 2}


def taken(found: Import, path: str, host: str = "*") -> dict[str, Any]:
    """The route without conditions that takes a path."""
    own = [each for each in routes(found) if each["hostname"] == host and not each.keys() & {"methods", "headers"}]
    keys = [(Key(each.get("path_kind", "prefix"), each.get("path", "/")), each) for each in own]
    keys.sort(key=lambda pair: pair[0].position())
    return next(spec for key, spec in keys if key.covers(path))


def pool_of(found: Import, path: str, host: str = "*") -> str:
    action = taken(found, path, host)["action"]
    return str(action["pools"][0]["pool"]) if "pools" in action else repr(action)


def verdict_of(found: Import, text: str) -> tuple[Verdict, str]:
    lines = [each for each in found.report if each.text == text]
    return lines[0].verdict, " ".join(lines[0].reasons)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_directive_of_the_corpus_has_one_verdict_and_every_object_is_valid(path: Path) -> None:
    text, found = path.read_text(), corpus(path)
    count = sum(word.ends and word.text != "}" for word in words_of(text))
    assert sum(not line.file for line in found.report) == count
    for line in found.report:
        assert line.verdict is Verdict.MAPPED or line.reasons, f"{line.number} {line.text}"
    for document in found.documents:
        read_object(document)
    assert len({(each["kind"], each["name"]) for each in found.documents}) == len(found.documents)


FEATURES = {
    "upstream": r"upstream \w+", "weights": "weight=", "backup": "backup;", "least_conn": "least_conn",
    "max_fails": "max_fails|fail_timeout", "TLS": "listen .* ssl", "several servers": r"server_name \S",
    "equal paths": "location = ", "firm prefixes": r"location \^~", "expressions": "location ~",
    "path behind the server": r"proxy_pass https?://\w+/", "headers": "proxy_set_header", "add_header": "add_header",
    "return": "return 30", "rewrite": "rewrite ", "if": r"if \(", "map": "map ", "limits": "limit_(req|conn) ",
    "networks": "deny ", "default server": "default_server", "wildcards": r"server_name (\*\.|\.)",
    "timeouts": "proxy_(read|connect)_timeout", "try_files": "try_files", "sizes": "client_max_body_size",
}  # fmt: skip


def test_each_feature_is_in_the_corpus_more_than_once() -> None:
    texts = "\n".join(path.read_text() for path in FILES)
    assert len(FILES) >= 12
    assert [name for name, each in FEATURES.items() if len(re.findall(each, texts)) < 2] == []


def test_the_longest_prefix_answers_unless_an_expression_does() -> None:
    found = server(
        r"location ~ \.png$ { proxy_pass http://c; }", "location / { proxy_pass http://a; }",
        "location /docs/ { proxy_pass http://b; }", "location ^~ /docs/firm/ { proxy_pass http://d; }",
        "location = / { proxy_pass http://d; }",
    )  # fmt: skip
    paths = ("/", "/x", "/docs/x", "/docs/x.png", "/x.png", "/docs/firm/x.png", "/docsx")
    assert [pool_of(found, path) for path in paths] == ["d", "a", "b", "c", "c", "d", "a"]


def test_expressions_are_asked_in_their_order_and_nested_locations_first() -> None:
    found = server(
        "location ~ ^/v[0-9]+/ { proxy_pass http://a; }", "location ~ ^/v1/ { proxy_pass http://b; }",
        "location /n/ { location /n/m/ { proxy_pass http://c; } proxy_pass http://d; }",
        "location / { proxy_pass http://b; }",
    )  # fmt: skip
    assert [pool_of(found, path) for path in ("/v1/x", "/n/x", "/n/m/x", "/z")] == ["a", "d", "c", "b"]


def test_a_firm_prefix_inside_of_another_keeps_only_its_own_expressions_away() -> None:
    found = server(
        "location ~ b/ { proxy_pass http://c; }", "location / { proxy_pass http://d; }",
        "location /a/ { location ^~ /a/b/ { proxy_pass http://a; }",
        r"location ~ \.x$ { proxy_pass http://b; } return 204; }",
    )  # fmt: skip
    assert [pool_of(found, path) for path in ("/a/b/z", "/a/z.x", "/z.x")] == ["c", "b", "d"]
    assert any("/a/b/zz.x are decided by another line" in reason for line in found.report for reason in line.reasons)


@pytest.mark.parametrize("path", ["/a b/", "/x//y", "/caf\u00e9", "/%41/"])
def test_a_path_that_no_route_can_have_is_not_possible(path: str) -> None:
    found = server("location / { proxy_pass http://a; }", f'location "{path}" {{ proxy_pass http://b; }}')
    (line,) = [each for each in found.report if each.text.startswith("location") and path in each.text]
    assert line.verdict is Verdict.NOT_POSSIBLE
    assert [each["action"] for each in routes(found)] == [{"pools": [{"pool": "a"}]}]


def test_captures_name_what_is_left_of_a_path_or_a_host() -> None:
    found = server(
        "server_name example.com www.example.com;", r"if ($host ~ ^www\.(.*)$) { return 301 https://$1$request_uri; }",
        "location ~ ^/old/(.*)$ { return 301 /new/$1; }", "location / { proxy_pass http://a; }",
    )  # fmt: skip
    assert taken(found, "/old/x")["action"]["redirect"]["prefix"] == "/new"
    www = taken(found, "/x", "www.example.com")["action"]["redirect"]
    assert (www["scheme"], www["host"]) == ("https", "example.com")


def test_a_rewritten_path_is_passed_on_as_it_is() -> None:
    found = server(
        "location / { proxy_pass http://b; }",
        "location /api/ { rewrite ^/api/(.*)$ /v1/$1 break; proxy_pass http://a/not/this/; }",
        "location /go/ { rewrite ^/go/(.*)$ /to/$1 last; }", "location /to/ { proxy_pass http://c; }",
    )  # fmt: skip
    assert taken(found, "/api/x")["prefix_rewrite"] == "/v1"
    assert (pool_of(found, "/go/x"), taken(found, "/go/x")["prefix_rewrite"]) == ("c", "/to")


def test_the_slash_of_the_root_is_replaced_too() -> None:
    found = server("location / { proxy_pass http://a/m; }")
    assert taken(found, "/x")["rules"]["rewrite"] == {"path_regex": "/(.*)", "path_replacement": r"/m\1"}


def test_a_prefix_takes_what_begins_alike_and_is_no_segment() -> None:
    found = server("location /api { proxy_pass http://a; }", "location / { proxy_pass http://b; }")
    assert [pool_of(found, path) for path in ("/api", "/api/x", "/apiary", "/ap")] == ["a", "a", "a", "b"]


def test_a_path_without_its_slash_is_redirected_where_a_server_answers_behind_it() -> None:
    found = server("location /api/ { proxy_pass http://a; }", "location / { proxy_pass http://b; }")
    assert taken(found, "/api")["action"]["redirect"] == {"code": 301, "keep_query": True, "path": "/api/"}
    own = server("location /api/ { proxy_pass http://a; }", "location = /api { proxy_pass http://b; }")
    assert pool_of(own, "/api") == "b"


@pytest.mark.parametrize(
    ("location", "uri", "said"),
    [
        ("/api/", "/", {"prefix_rewrite": "/"}),
        ("/api/", "/v2/", {"prefix_rewrite": "/v2"}),
        ("/api", "/v2", {"prefix_rewrite": "/v2"}),
        ("/api/", "/v2", {"path_regex": "/api/(.*)", "path_replacement": r"/v2\1"}),
        ("= /api/x", "/y", {"path": "/y"}),
        ("/api/", "/api/", {}),
        ("/api/", "", {}),
    ],
)
def test_a_path_behind_the_server_takes_the_place_of_the_locations(
    location: str, uri: str, said: dict[str, str]
) -> None:
    found = server(f"location {location} {{ proxy_pass http://a{uri}; }}", "location / { proxy_pass http://b; }")
    spec = taken(found, "/api/x")
    rewrite = spec.get("rules", {}).get("rewrite", {})
    assert rewrite | ({"prefix_rewrite": spec["prefix_rewrite"]} if "prefix_rewrite" in spec else {}) == said


def test_what_begins_alike_is_rewritten_sign_by_sign() -> None:
    found = server("location /api { proxy_pass http://a/v2; }", "location / { proxy_pass http://b; }")
    assert taken(found, "/apiary")["rules"]["rewrite"] == {"path_regex": "/api(.*)", "path_replacement": r"/v2\1"}


def test_a_block_that_says_one_header_forgets_those_around_it() -> None:
    found = server(
        "proxy_set_header X-Outer 1;", "add_header X-Seen 1 always;",
        "location / { proxy_pass http://a; }",
        "location /own/ { proxy_set_header X-Inner 2; add_header X-Mine 2 always; proxy_pass http://a; }",
    )  # fmt: skip
    assert taken(found, "/x")["rules"]["request_headers"] == {"set": {"X-Outer": "1"}}
    assert taken(found, "/x")["rules"]["response_headers"] == {"add": {"X-Seen": "1"}}
    own = taken(found, "/own/x")["rules"]
    assert own["request_headers"] == {"set": {"X-Inner": "2"}}
    assert own["response_headers"] == {"add": {"X-Mine": "2"}}


def test_without_a_host_servers_get_the_name_of_the_upstream() -> None:
    assert taken(server("location / { proxy_set_header X-A 1; proxy_pass http://a; }"), "/x")["rules"]["rewrite"] == {
        "host": "a"
    }
    found = server("location / { proxy_set_header X-A 1; proxy_pass http://192.0.2.7:8080; }")
    reasons = next(line.reasons for line in found.report if line.verdict is Verdict.DIFFERENT)
    assert "nginx sent 192.0.2.7:8080" in reasons[0], "a Host with a port is none that routes can say"


def test_headers_without_always_are_said_to_come_with_errors_too() -> None:
    found = server("location / { add_header X-A 1; proxy_pass http://a; }")
    assert verdict_of(found, "add_header X-A 1") == (
        Verdict.DIFFERENT, "Responses with errors have it as well, as if it said always."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "redirect"),
    [
        ("https://$host$request_uri", {"scheme": "https", "keep_query": True}),
        ("https://example.com", {"scheme": "https", "host": "example.com", "path": "/", "keep_query": False}),
        ("https://example.com$request_uri", {"scheme": "https", "host": "example.com", "keep_query": True}),
        ("https://example.com$uri", {"scheme": "https", "host": "example.com", "keep_query": False}),
        ("/new?a=b", {"path": "/new", "query": "a=b", "keep_query": False}),
        ("/new$is_args$args", {"path": "/new", "keep_query": True}),
    ],
)
def test_return_names_where_clients_are_sent(target: str, redirect: dict[str, Any]) -> None:
    found = server(f"return 302 {target};")
    assert taken(found, "/x")["action"]["redirect"] == {"code": 302} | redirect


@pytest.mark.parametrize("target", ["https://$http_x_host/", "https://$host.example.com/", "/x/$1", "$cookie_to"])
def test_a_target_of_other_parts_is_not_possible_and_makes_no_route(target: str) -> None:
    found = server("location / { proxy_pass http://a; }", f"location /r {{ return 301 {target}; }}")
    assert verdict_of(found, f"return 301 {target}")[0] is Verdict.NOT_POSSIBLE
    assert all("redirect" not in each["action"] for each in routes(found))


def test_networks_become_the_list_that_they_mean() -> None:
    found = server(
        "location / { proxy_pass http://a; }",
        "location /in/ { allow 192.0.2.0/24; deny all; proxy_pass http://a; }",
        "location /but/ { allow 10.0.0.1; deny 10.0.0.0/30; proxy_pass http://a; }",
        "location /no/ { deny all; proxy_pass http://a; }",
    )  # fmt: skip
    lists = {each["name"]: [one["network"] for one in each["spec"]["entries"]]
             for each in found.documents if each["kind"] == "NetworkList"}  # fmt: skip
    said = {path: taken(found, path)["rules"]["access"] for path in ("/in/x", "/but/x")}
    assert lists[said["/in/x"]["allow"][0]] == ["192.0.2.0/24"]
    assert lists[said["/but/x"]["deny"][0]] == ["10.0.0.0/32", "10.0.0.2/31"]
    assert taken(found, "/no/x")["action"]["fixed_response"]["status"] == 403


@pytest.mark.parametrize(
    "line",
    ["auth_request /check;", "auth_jwt on;", "secure_link $arg_md5;", "auth_basic x; auth_basic_user_file none;",
     "satisfy any; allow 10.0.0.1; deny all;", "access_by_lua_file x.lua;", "deny nonsense;"],
)  # fmt: skip
def test_what_nobody_here_can_ask_closes_the_location(line: str) -> None:
    found = server("location / { proxy_pass http://a; }", f"location /p/ {{ {line} proxy_pass http://b; }}")
    assert taken(found, "/p/x")["action"]["fixed_response"]["status"] == 403
    assert pool_of(found, "/x") == "a"


def test_a_location_that_is_internal_answers_nobody() -> None:
    found = server("location / { proxy_pass http://a; }", "location /i/ { internal; proxy_pass http://b; }")
    assert taken(found, "/i/x")["action"]["fixed_response"]["status"] == 404
    assert taken(found, "/i")["action"]["fixed_response"]["status"] == 404


@pytest.mark.parametrize("line", ["root /srv;", "alias /srv/;", "fastcgi_pass 127.0.0.1:9000;", "uwsgi_pass x:1;",
                                  "try_files $uri =404;"])  # fmt: skip
def test_files_and_programs_are_not_possible_and_say_what_stands_instead(line: str) -> None:
    found = server("location / { proxy_pass http://a; }", f"location /s/ {{ {line} }}")
    verdict, why = verdict_of(found, line.removesuffix(";"))
    assert verdict is Verdict.NOT_POSSIBLE
    assert "server" in why
    assert taken(found, "/s/x")["action"]["fixed_response"]["status"] == 404


def test_servers_of_the_machine_itself_stay_there() -> None:
    found = read("http { server { listen 127.0.0.1:8080; location / { proxy_pass http://10.0.0.1; } } }")
    assert found.documents == ()
    assert {line.verdict for line in found.report if line.section} == {Verdict.NOT_POSSIBLE, Verdict.DEAD}


def test_each_port_has_its_default_server() -> None:
    found = read(
        f"http {{ {UPSTREAMS} proxy_set_header Host $host;"
        "server { listen 80; server_name a.example.com; location / { proxy_pass http://a; } }"
        "server { listen 80 default_server; listen 8080; server_name b.example.com;"
        " location / { proxy_pass http://b; } }"
        "server { listen 8080; server_name *.example.com; location / { proxy_pass http://c; } } }"
    )
    shown = {(each["load_balancer"], each["hostname"]): each["action"]["pools"][0]["pool"] for each in routes(found)}
    assert shown == {
        ("nginx-80", "*"): "b", ("nginx-80", "a.example.com"): "a",
        ("nginx-8080", "*"): "b", ("nginx-8080", "**.example.com"): "c", ("nginx-8080", "b.example.com"): "b",
    }  # fmt: skip


def test_hosts_by_expression_are_not_possible() -> None:
    found = read(r"http { server { listen 80; server_name ~^u\d+\.example\.com$; return 204; } }")
    verdict, why = verdict_of(found, r"server_name ~^u\d+\.example\.com$")
    assert verdict is Verdict.NOT_POSSIBLE
    assert "name each" in why


def test_conditions_become_conditions_of_routes() -> None:
    found = server(
        "if ($request_method = POST) { return 405; }", "if ($http_x_beta) { return 302 /beta; }",
        "location / { proxy_pass http://a; }",
    )  # fmt: skip
    everywhere = [each for each in routes(found) if "path" not in each]
    said = {tuple(sorted(each.keys() & {"methods", "headers"})): each["action"] for each in everywhere}
    assert said["methods",]["fixed_response"]["status"] == 405
    assert said["headers",]["redirect"]["path"] == "/beta"
    assert said[()]["pools"][0]["pool"] == "a"


def test_a_condition_that_nobody_can_ask_is_reported_and_changes_nothing() -> None:
    found = server("if ($geoip_country_code = XX) { return 403; }", "location / { proxy_pass http://a; }")
    assert verdict_of(found, "if ($geoip_country_code = XX) {")[0] is Verdict.NOT_POSSIBLE
    assert [each["action"] for each in routes(found)] == [{"pools": [{"pool": "a"}]}]


def test_maps_choose_servers_by_what_they_look_at() -> None:
    found = server(
        "location / { proxy_pass http://$to; }", outside="map $http_x_tier $to { default a; gold b; ~^silver c; }"
    )
    shown = {(each.get("headers") or [{"value": ""}])[0]["value"]: each["action"]["pools"][0]["pool"]
             for each in routes(found) if len(each.get("headers", ())) < 2}  # fmt: skip
    assert shown[""] == "a"
    assert set(shown.values()) == {"a", "b", "c"}


def test_options_of_servers_are_those_of_the_pool() -> None:
    found = server(
        "location / { proxy_pass http://up; }",
        outside="upstream up { ip_hash; server 10.1.0.1:80 max_fails=2 fail_timeout=5s max_conns=9; "
        "server 10.1.0.2:80 down; }",
    )
    (pool,) = specs(found, "Pool")
    assert pool["balance"] == "source"
    assert pool["outlier_ejection"] == {"observe": "connections", "errors": 2, "return_after_ms": 5000}
    assert pool["connections"] == {"max_per_server": 9}
    assert pool["backends"][0]["servers"][1]["state"] == "maintenance"


def test_one_upstream_that_is_reached_in_two_ways_is_two_pools() -> None:
    found = server(
        "location / { proxy_pass http://a; }", "location /slow/ { proxy_read_timeout 9m; proxy_pass http://a; }",
        "location /tls/ { proxy_pass https://a; }",
    )  # fmt: skip
    pools = specs(found, "Pool")
    assert [each["server_timeout_ms"] for each in pools] == [540_000, 60_000, 60_000]
    assert ["server_tls" in each for each in pools] == [False, True, False]


def test_certificates_and_users_are_asked_for_where_the_file_is_not_there() -> None:
    found = server("listen 443 ssl;", "ssl_certificate /x/live/shop/fullchain.pem;", "ssl_certificate_key /x/k.pem;",
                   "location / { auth_basic s; auth_basic_user_file users; proxy_pass http://a; }")  # fmt: skip
    assert found.needs == (
        "The certificate /x/live/shop/fullchain.pem (--certificate /x/live/shop/fullchain.pem=NAME).",
        "The file users (--files).",
    )
    (balancer,) = specs(found, "LoadBalancer")
    assert balancer["listeners"][0]["certificates"] == ["shop"]


def test_limits_of_clients_say_what_differs() -> None:
    found = server("location / { limit_req zone=z burst=5 nodelay; proxy_pass http://a; }",
                   outside="limit_req_zone $binary_remote_addr zone=z:1m rate=3r/s;")  # fmt: skip
    limit = taken(found, "/")["rules"]["client_limit"]
    assert limit == {"requests": 3, "per": "second", "burst": 8, "ipv6_prefix": 128}
    assert verdict_of(found, "limit_req zone=z burst=5 nodelay")[0] is Verdict.DIFFERENT


def test_every_directive_that_nginx_has_gets_one_verdict_wherever_it_stands() -> None:
    for around in ("http {{ {0} }}", "http {{ server {{ {0} }} }}", "http {{ server {{ location / {{ {0} }} }} }}",
                   "stream {{ server {{ {0} }} }}", "{0}"):  # fmt: skip
        for end in (" x y;", " x { }", ";"):
            text = around.format("\n".join(f"{name}{end}" for name in sorted(DIRECTIVES) if name != "include"))
            found = read(text)
            count = sum(word.ends and word.text != "}" for word in words_of(text))
            assert len(found.report) == count
            assert all(line.verdict is Verdict.MAPPED or line.reasons for line in found.report)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_directive_that_nobody_knows_is_reported_wherever_it_stands(path: Path) -> None:
    lines = path.read_text().splitlines()
    spots = [at for at, line in enumerate(lines, 1) if line.rstrip().endswith((";", "}", "{"))]
    for at in random.Random(7).sample(spots, 3):
        changed = [*lines[:at], "frobnicate 17 -f nothing;", *lines[at:]]
        (line,) = [each for each in read("\n".join(changed), BESIDE).report if each.number == at + 1]
        inside_a_list = any(word in line.section for word in ("map ", "types", "events"))
        assert line.text == "frobnicate 17 -f nothing"
        assert inside_a_list or line.verdict in (Verdict.NOT_POSSIBLE, Verdict.DEAD)


def test_formats_are_recognised_by_what_they_say_and_then_by_name() -> None:
    names = {path.name: (recognised("pasted text", path.read_text()) or FORMATS["haproxy"]).name for path in FILES}
    assert set(names.values()) == {"nginx"}
    old = Path(CORPUS.parent / "corpus" / "01-small-office.cfg").read_text()
    assert recognised("nginx.conf", old) is FORMATS["haproxy"]
    assert recognised("nginx.conf", "# nothing") is FORMATS["nginx"]
    assert recognised("story.txt", "once upon a time") is None
    assert main_files({"conf.d/a.conf": "server { }", "nginx.conf": "http { }", "mime.types": ""}) == ["nginx.conf"]


def test_where_a_redirect_leads_to_itself_is_answered_and_said() -> None:
    line = "return 301 http://a.example$request_uri;"
    found = read(f"http {{ server {{ listen 80; server_name a.example; {line} }} }}")
    assert taken(found, "/x", "a.example")["action"]["fixed_response"]["status"] == 404
    assert taken(found, "/x")["action"]["redirect"]["host"] == "a.example"
    assert "a.example/ leads to itself; clients get 404 there" in verdict_of(found, line.removesuffix(";"))[1]


def test_the_name_of_such_an_answer_is_one_however_long_that_of_the_redirect_is() -> None:
    host = "a-very-long-name-of-a-host-that-has-many-letters.and-another-label-of-it.example"
    sites = "".join(f"location {path} {{ return 301 {path}; }}" for path in ("/some", "/other", "/more"))
    found = read(f"http {{ server {{ listen 80; server_name {host}; {sites} }} }}", prefix="old-")
    names = [each["name"] for each in found.documents if each["kind"] == "Route"]
    assert len(names) == len(set(names))
    assert sum("fixed_response" in each["action"] for each in routes(found)) >= 3
    assert all(name.startswith("old-") and len(name) <= 63 for name in names)


def test_names_of_routes_do_not_say_the_value_of_a_header_that_may_be_a_secret() -> None:
    keys = [f"if ($http_x_api_key = s3cret-{word}) {{ return 403; }}" for word in ("one", "two")]
    found = server("location / {", *keys, "proxy_pass http://a; }")
    names = [each["name"] for each in found.documents if each["kind"] == "Route"]
    assert len(set(names)) == len(names) == 3
    assert not any("s3cret" in name for name in names)
