"""Directives of nginx that have no effect, that say what nodes do, and what becomes of their neighbours that do."""

from __future__ import annotations

import pytest

from apps.importing.verdicts import Verdict
from tests.pure.test_importing_nginx import pool_of, read, server, specs, verdict_of


def test_directives_without_effect_are_not_called_impossible() -> None:
    found = server(
        "index index.html;", "root /srv;", "http3 on;", "client_body_timeout 9s;",
        "location / { proxy_pass http://a; proxy_redirect off; proxy_cache_bypass $http_upgrade; expires off;"
        " client_body_timeout 8s; }",
        "location /b/ { proxy_pass http://b; proxy_redirect default; proxy_next_upstream_timeout 5s; }",
        "location /c/ { add_header Content-Length 0; return 204; }",
    )  # fmt: skip
    assert not [each for each in found.report if each.verdict is Verdict.NOT_POSSIBLE]
    for text in ("index index.html", "root /srv", "proxy_cache_bypass $http_upgrade"):
        assert verdict_of(found, text)[0] is Verdict.DEAD
    for text in ("proxy_redirect off", "expires off"):
        assert verdict_of(found, text)[0] is Verdict.MAPPED
    differing = ("http3 on", "proxy_redirect default", "proxy_next_upstream_timeout 5s", "add_header Content-Length 0")
    for text in (*differing, "client_body_timeout 8s"):
        assert verdict_of(found, text)[0] is Verdict.DIFFERENT


def test_files_of_challenges_are_what_nodes_answer_themselves() -> None:
    found = server(
        "charset utf-8;", "autoindex off;", "gzip_static on;", "location / { proxy_pass http://a; }",
        "location ^~ /.well-known/acme-challenge/ {"
        " root /var/www/acme; default_type text/plain; try_files $uri =404; }",
        "location /files/ { alias /srv/; }",
    )  # fmt: skip
    for text in ("root /var/www/acme", "default_type text/plain", "try_files $uri =404"):
        verdict, why = verdict_of(found, text)
        assert (verdict, "challenges of ACME" in why) == (Verdict.DIFFERENT, True)
    assert verdict_of(found, "charset utf-8")[0] is Verdict.DIFFERENT
    assert verdict_of(found, "autoindex off")[0] is Verdict.MAPPED
    lost = {each.text for each in found.report if each.verdict is Verdict.NOT_POSSIBLE}
    assert lost == {"alias /srv/", "gzip_static on"}, "what another location serves is lost, and what is served so"


def test_who_lets_everybody_in_refuses_nobody() -> None:
    found = server(
        "location /a/ { allow all; proxy_pass http://a; }", "location /b/ { deny all; proxy_pass http://b; }"
    )
    assert [verdict_of(found, each)[0] for each in ("allow all", "deny all")] == [Verdict.MAPPED, Verdict.DIFFERENT]


def test_a_group_with_a_name_is_a_group() -> None:
    found = server(r"location ~ ^/widget/(?<path>\S+)$ { proxy_pass http://a; }")
    assert r"/widget/(\S+)" in [each.get("path") for each in specs(found, "Route")]


def test_a_time_of_connections_beside_no_server_is_used_by_nobody() -> None:
    found = read("http { keepalive_timeout 65; include conf.d/*.conf; }")
    assert verdict_of(found, "keepalive_timeout 65")[0] is Verdict.DEAD


def test_the_same_directives_are_lost_where_they_have_an_effect() -> None:
    found = server(
        "index index.html;", "root /srv;", "location /b/ { proxy_pass http://b; }",
        "location /c/ { proxy_pass http://c; proxy_cache one; proxy_cache_bypass $http_upgrade; }",
        "location /d/ { proxy_pass http://d; proxy_redirect http://d/ /d/; expires 1h; }",
    )  # fmt: skip
    lost = {each.text for each in found.report if each.verdict is Verdict.NOT_POSSIBLE}
    assert lost == {
        "index index.html", "root /srv", "proxy_cache one", "proxy_cache_bypass $http_upgrade",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "prefix", "text"),
    [
        ("http://d/ /d/", "http://d/", "/d/"),
        ("http://d:81 $scheme://$host", "http://d:81/", "/"),
        ("http://d/x/ $scheme://$http_host/y/", "http://d/x/", "/y/"),
        ("http:// https://", "http://", "https://"),
        ("~^http://d/(.*)$ /$1", None, None),
        ("http://d/ $scheme://e/", None, None),
    ],
)
def test_redirects_of_servers_begin_otherwise(said: str, prefix: str | None, text: str | None) -> None:
    found = server(f"location / {{ proxy_pass http://d; proxy_redirect {said}; }}")
    wanted = Verdict.NOT_POSSIBLE if prefix is None else Verdict.MAPPED
    assert verdict_of(found, f"proxy_redirect {said}")[0] is wanted
    block = {"location_prefix": prefix, "location_replacement": text}
    assert (f"'response_rewrite': {block}" in str(found.documents)) == (prefix is not None)


@pytest.mark.parametrize(
    ("said", "caching"),
    [
        ("1h", "max-age=3600"), ("30d", "max-age=2592000"), ("max", "max-age=315360000"), ("-1", "no-cache"),
        ("1y", "max-age=31536000"), ("+2M", "max-age=5184000"),
        ("epoch", "no-cache"), ("modified +1h", ""), ("@15h30m", ""), ("$when", ""),
    ],
)  # fmt: skip
def test_a_time_of_expiry_becomes_its_cache_control(said: str, caching: str) -> None:
    found = server(f"location / {{ proxy_pass http://a; expires {said}; }}")
    wanted = Verdict.DIFFERENT if caching else Verdict.NOT_POSSIBLE
    assert verdict_of(found, f"expires {said}")[0] is wanted
    assert (f"'Cache-Control': '{caching}'" in str(found.documents)) == bool(caching)


def test_a_port_of_quic_speaks_tls_and_says_that_http3_is_off() -> None:
    body = "listen 443 ssl; listen 443 quic reuseport; ssl_certificate a.pem; ssl_certificate_key a.key;"
    found = read(f"http {{ server {{ {body} location / {{ return 204; }} }} }}", certificates={"a.pem": "site"})
    verdict, why = verdict_of(found, "listen 443 quic reuseport")
    assert verdict is Verdict.DIFFERENT
    assert "HTTP/3" not in why
    assert "tls.http3" in why
    assert "speaks TLS with every client" not in why


def test_a_page_that_did_not_come_along_differs_and_its_status_stays() -> None:
    found = server("error_page 500 502 /50x.html;", "location / { proxy_pass http://a; }")
    verdict, why = verdict_of(found, "error_page 500 502 /50x.html")
    assert verdict is Verdict.DIFFERENT
    assert "--files" in why
    other = server("error_page 404 =200 /x.html;", "location / { proxy_pass http://a; }")
    assert verdict_of(other, "error_page 404 =200 /x.html")[0] is Verdict.NOT_POSSIBLE


def test_groups_that_are_not_counted_are_said_by_patterns() -> None:
    found = server(r"location ~* ^.+\.(?:css|js)$ { proxy_pass http://b; }", "location / { proxy_pass http://a; }")
    assert pool_of(found, "/app/site.css") == pool_of(found, "/x.JS") != pool_of(found, "/css")


def test_a_part_that_another_file_includes_says_so() -> None:
    found = read("location /a { proxy_pass http://10.0.0.1; }\nserver_tokens off;\n")
    assert "read the file that includes this one" in verdict_of(found, "location /a {")[1]


def test_a_location_of_a_sign_alone_takes_every_path() -> None:
    for sign in ("~", "~*", "^~"):
        found = server(f"location {sign} {{ proxy_pass http://b; }}", "location = /health { return 204; }")
        assert pool_of(found, "/any/thing") == "b"
        assert "204" in pool_of(found, "/health")


def test_a_header_that_nodes_do_not_set_is_set_by_rules() -> None:
    found = server(
        "location / { proxy_pass http://a; proxy_set_header X-Forwarded-Server $host;"
        " proxy_set_header X-Real-IP $remote_addr; }"
    )
    assert verdict_of(found, "proxy_set_header X-Forwarded-Server $host")[0] is Verdict.MAPPED
    assert "'X-Forwarded-Server': '{host}'" in str(found.documents)
    assert verdict_of(found, "proxy_set_header X-Real-IP $remote_addr")[0] is Verdict.MAPPED


def test_a_location_that_only_has_the_page_of_an_error_is_not_impossible() -> None:
    page = "error_page 500 502 /50x.html;"
    pages = "location = /50x.html { root /usr/share/nginx/html; }"
    found = server(page, pages, "location / { proxy_pass http://a; }")
    assert verdict_of(found, "root /usr/share/nginx/html")[0] is Verdict.DIFFERENT
    other = server(pages, "location / { proxy_pass http://a; }")
    assert verdict_of(other, "root /usr/share/nginx/html")[0] is Verdict.NOT_POSSIBLE


def test_a_name_of_one_label_is_that_of_the_server_which_answers_for_all_hosts() -> None:
    first = "server { listen 80; server_name proxy; location / { proxy_pass http://10.0.0.1; } }\n"
    second = "server { listen 80; server_name other; location / { proxy_pass http://10.0.0.2; } }\n"
    assert verdict_of(read(first), "server_name proxy")[0] is Verdict.MAPPED
    both = read(first + second)
    assert verdict_of(both, "server_name proxy")[0] is Verdict.MAPPED
    assert verdict_of(both, "server_name other")[0] is Verdict.NOT_POSSIBLE


def test_a_header_of_another_name_has_the_address_of_the_client() -> None:
    line = "proxy_set_header X-Client $proxy_add_x_forwarded_for"
    found = server(f"location / {{ proxy_pass http://a; {line}; }}")
    assert verdict_of(found, line)[0] is Verdict.DIFFERENT
    (route,) = [each["spec"] for each in found.documents if each["kind"] == "Route"]
    assert route["rules"]["request_headers"]["set"] == {"X-Client": "{client_address}"}


def test_what_servers_are_sent_otherwise_is_said() -> None:
    found = server("location / { proxy_pass http://shopBackend; proxy_set_header X-Client $proxy_protocol_addr; }")
    verdict, why = verdict_of(found, "proxy_pass http://shopBackend")
    assert verdict is Verdict.DIFFERENT
    assert "lower case" in why
    verdict, why = verdict_of(found, "proxy_set_header X-Client $proxy_protocol_addr")
    assert verdict is Verdict.DIFFERENT
    assert "no PROXY protocol" in why


def test_what_stands_in_a_block_without_a_place_is_lost_with_it() -> None:
    found = server("location ~ ^/(?!a)b { deny all; proxy_pass http://a; }", "location / { proxy_pass http://b; }")
    for text in ("deny all", "proxy_pass http://a"):
        assert verdict_of(found, text) == (Verdict.NOT_POSSIBLE, "The block around it has no place here.")


def test_a_port_of_tls_without_a_certificate_takes_its_server_along() -> None:
    found = read("server { listen 443 ssl; server_name a.example; return 444; }")
    for text in ("server {", "listen 443 ssl"):
        verdict, why = verdict_of(found, text)
        assert verdict is Verdict.NOT_POSSIBLE
        assert "No ssl_certificate is named" in why
    assert verdict_of(found, "return 444") == (Verdict.NOT_POSSIBLE, "The block around it has no place here.")


def test_a_certificate_without_a_port_of_tls_is_used_by_nobody() -> None:
    found = server("ssl_certificate a.pem;", "ssl_certificate_key a.key;", "location / { proxy_pass http://a; }")
    for text in ("ssl_certificate a.pem", "ssl_certificate_key a.key"):
        assert verdict_of(found, text)[0] is Verdict.DEAD


@pytest.mark.parametrize(("status", "verdict"), [("429", Verdict.MAPPED), ("503", Verdict.DIFFERENT)])
def test_the_status_beyond_a_limit_is_429(status: str, verdict: Verdict) -> None:
    line = f"limit_req_status {status}"
    zone = "limit_req_zone $binary_remote_addr zone=one:1m rate=5r/s;"
    found = read(f"{zone} server {{ {line}; limit_req zone=one; location / {{ proxy_pass http://a; }} }}")
    assert verdict_of(found, line)[0] is verdict


def test_a_redirect_to_no_whole_name_is_said_and_stored_nowhere() -> None:
    found = read("server { listen 80; server_name cache; return 301 https://$server_name$request_uri; }")
    verdict, why = verdict_of(found, "return 301 https://$server_name$request_uri")
    assert verdict is Verdict.NOT_POSSIBLE
    assert "whole host names" in why
    assert "redirect" not in str(found.documents)


@pytest.mark.parametrize(
    ("location", "expression", "verdict"),
    [
        ("/api", "/api/(.*)", Verdict.DIFFERENT),
        ("/api/", "/api/(.*)", Verdict.MAPPED),
        ("/api/", "/api/(.*)$", Verdict.MAPPED),
        ("/", "/api/(.*)", Verdict.NOT_POSSIBLE),
    ],
)
def test_an_expression_that_looks_anywhere_finds_its_text_at_the_beginning_of_its_location(
    location: str, expression: str, verdict: Verdict
) -> None:
    line = f"rewrite {expression} /$1 break"
    found = server(f"location {location} {{ {line}; proxy_pass http://a; }}")
    assert verdict_of(found, line)[0] is verdict
    moved = {spec["path"] for spec in specs(found, "Route") if spec.get("prefix_rewrite") or "rewrite" in str(spec)}
    assert moved == (set() if verdict is Verdict.NOT_POSSIBLE else {"/api"})


def test_headers_of_a_condition_take_the_place_of_those_of_its_location() -> None:
    found = server(
        "location / { add_header X-A always-there; proxy_pass http://a;"
        " if ($request_method = POST) { add_header X-B posted; }"
        " if ($http_x_kind = odd) { add_header X-C odd; } }"
    )
    assert not [each for each in found.report if each.verdict is Verdict.NOT_POSSIBLE]
    added = {}
    for spec in specs(found, "Route"):
        asked = tuple(sorted({*spec.get("methods", ()), *(each["name"] for each in spec.get("headers", ()))}))
        added[asked] = spec["rules"]["response_headers"]["add"]
    assert added[()] == {"X-A": "always-there"}
    assert added["POST",] == {"X-B": "posted"}
    assert [value for asked, value in added.items() if "X-Kind" in asked or "x-kind" in asked] != []
    assert {tuple(value) for asked, value in added.items() if len(asked) > 1} <= {("X-C",)}


def test_a_header_that_is_added_twice_is_one_list() -> None:
    lines = ("add_header Cache-Control public always;", "add_header Cache-Control max-age=5 always;")
    found = server("location / { proxy_pass http://a; " + " ".join(lines) + " }")
    (route,) = specs(found, "Route")
    assert route["rules"]["response_headers"]["add"] == {"Cache-Control": "public, max-age=5"}
    assert verdict_of(found, "add_header Cache-Control public always")[0] is Verdict.MAPPED
    assert verdict_of(found, "add_header Cache-Control max-age=5 always")[0] is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("said", "drops"),
    [
        ("set $x http://a; proxy_pass $x/base/", True),
        ("set $x http://a; proxy_pass $x/base/$is_args$args", False),
        ("set $x http://a; proxy_pass $x$request_uri", False),
        ("proxy_pass http://a$uri", True),
        ("proxy_pass http://a", False),
    ],
)
def test_a_path_of_variables_is_sent_without_a_query_that_it_does_not_name(said: str, drops: bool) -> None:
    found = server(f"location /v1/ {{ {said}; }}")
    assert ("'drop_query': True" in str(found.documents)) == drops


@pytest.mark.parametrize(("path", "drops"), [("/$1", True), ("/$1$is_args$args", False)])
def test_a_server_gets_what_the_expression_of_its_location_holds(path: str, drops: bool) -> None:
    found = server(f"location ~ ^/v1/(.*)$ {{ proxy_pass http://a{path}; }}")
    assert verdict_of(found, f"proxy_pass http://a{path}")[0] is Verdict.MAPPED
    assert "'prefix_rewrite': '/'" in str(found.documents)
    assert ("'drop_query': True" in str(found.documents)) == drops


def test_what_stands_behind_a_break_answers_nobody_whose_path_was_rewritten() -> None:
    rewritten = "rewrite ^/api/(.*) /$1 break; if ($request_method = OPTIONS) { return 204; } return 403;"
    found = server(f"location /api {{ {rewritten} proxy_pass http://a; }}", "location / { proxy_pass http://b; }")
    assert pool_of(found, "/api/x") == "a"
    assert "403" in pool_of(found, "/apix")
    asked = [spec["path"] for spec in specs(found, "Route") if "OPTIONS" in spec.get("methods", ())]
    assert not [path for path in asked if path.startswith("/api/")]


def test_lists_that_begin_alike_have_names_of_their_own() -> None:
    found = server(
        "location /a/ { allow 10.1.0.1; deny all; proxy_pass http://a; }",
        "location /b/ { allow 10.1.0.1; allow 10.2.0.0/16; deny all; proxy_pass http://b; }",
    )
    names = [each["name"] for each in found.documents if each["kind"] == "NetworkList"]
    assert len(names) == len(set(names)) == 2


def test_networks_give_a_variable_its_value_the_longest_one_first() -> None:
    geo = "geo $inside { default 0; 10.0.0.0/8 1; 10.128.0.0/9 0; 192.0.2.0/24 2; }"
    asks = "if ($inside = 1) { return 403; } if ($inside = 2) { return 401; }"
    found = server(asks, "location / { proxy_pass http://a; }", outside=geo)
    assert not [each for each in found.report if each.verdict is Verdict.NOT_POSSIBLE]
    asked = {
        tuple(spec.get("client_networks", ())): spec["action"].get("fixed_response", {}).get("status")
        for spec in specs(found, "Route")
    }
    assert asked == {("10.0.0.0/9",): 403, ("192.0.2.0/24",): 401, (): None}


@pytest.mark.parametrize("geo", ["geo $arg_ip $x { default 0; }", "geo $x { ranges; 10.0.0.0-10.0.0.9 1; }"])
def test_other_ways_to_compare_addresses_are_not_possible(geo: str) -> None:
    found = server("if ($x) { return 403; }", "location / { proxy_pass http://a; }", outside=geo)
    assert verdict_of(found, geo.partition("{")[0] + "{")[0] is Verdict.NOT_POSSIBLE


def test_a_location_of_hidden_files_but_one_refuses_all_others() -> None:
    found = server("location ~ /\\.(?!well-known).* { deny all; }", "location / { proxy_pass http://a; }")
    assert "403" in pool_of(found, "/.env")
    assert "403" in pool_of(found, "/x/.git/config")
    assert pool_of(found, "/.well-known/acme-challenge/1") == "a"
    assert pool_of(found, "/x.html") == "a"


def test_without_files_a_named_location_answers_also_where_servers_stand_beside_it() -> None:
    found = server("location / { proxy_pass http://a; try_files $uri @app; }", "location @app { proxy_pass http://b; }")
    assert pool_of(found, "/x") == "b"


def test_something_stands_before_every_dot_of_a_path() -> None:
    found = server("location ~* ^.+\\.(?:css|jpe?g|woff2)$ { return 403; }", "location / { proxy_pass http://a; }")
    assert "403" in pool_of(found, "/x/y.CSS")
    assert "403" in pool_of(found, "/.jpeg")
    assert pool_of(found, "/x.cssx") == "a"


def test_variables_of_a_template_are_asked_for_and_put_in() -> None:
    text = (
        "server { listen 80; set $OWN 1; location / { if ($OWN) { return 204; } proxy_pass http://${APP_HOST}:80; } }"
    )
    found = read(text)
    assert found.needs == ("The variable APP_HOST (--env APP_HOST=…).",)
    assert not [each for each in found.report if each.verdict is Verdict.NOT_POSSIBLE]
    given = read(text, environment={"APP_HOST": "app"})
    assert not given.needs
    assert "'address': 'app'" in str(given.documents)


@pytest.mark.parametrize("url", ["http://some-ip:some-port", "http://a:80b"])
def test_what_is_no_address_of_a_server_is_not_taken_for_a_path(url: str) -> None:
    found = server(f"location / {{ proxy_pass {url}; }}")
    verdict, why = verdict_of(found, f"proxy_pass {url}")
    assert verdict is Verdict.NOT_POSSIBLE
    assert "where a server is" in why
