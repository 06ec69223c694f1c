"""Ingresses as routes: paths, hosts, redirects, canaries, and what annotations say."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.kubernetes.ingress.spellings import ignoring_case
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict
from tests.authorities import Authority

NGINX = "nginx.ingress.kubernetes.io/"
SERVERS = {f"default/{name}:80": f"10.0.0.{at}:80" for at, name in enumerate("abcd", 1)}


def read(*objects: dict[str, Any] | str, **options: Any) -> Import:
    texts = [
        each if isinstance(each, str) else yaml.dump(each, Dumper=yaml.CSafeDumper, sort_keys=False) for each in objects
    ]
    return read_kubernetes("---\n".join(texts), {}, ImportOptions(servers=SERVERS, **options))


def backend(name: str) -> dict[str, Any]:
    return {"service": {"name": name, "port": {"number": 80}}}


def ingress(
    name: str = "web",
    rules: dict[str, list[tuple[str, str, str]]] | None = None,
    tls: list[dict[str, Any]] | None = None,
    **annotations: str,
) -> dict[str, Any]:
    """An Ingress whose rules are host → (path, type, Service); annotations are those of ingress-nginx."""
    listed = [
        {
            **({"host": host} if host else {}),
            "http": {"paths": [{"path": path, "pathType": kind, "backend": backend(to)} for path, kind, to in paths]},
        }
        for host, paths in (rules or {"x.example.com": [("/", "Prefix", "a")]}).items()
    ]
    named = {NGINX + key.replace("_", "-"): value for key, value in annotations.items()}
    spec = {"ingressClassName": "nginx", "rules": listed, **({"tls": tls} if tls else {})}
    metadata = {"name": name, **({"annotations": named} if named else {})}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def annotated(name: str, value: str) -> dict[str, Any]:
    """An Ingress with this annotation; one without a prefix is of ingress-nginx."""
    found = ingress()
    found["metadata"]["annotations"] = {name if "/" in name else NGINX + name.replace("_", "-"): value}
    return found


def specs(found: Import, kind: str) -> dict[str, dict[str, Any]]:
    for document in found.documents:
        read_object(document)
    return {each["name"]: each["spec"] for each in found.documents if each["kind"] == kind}


def routes(found: Import) -> list[tuple[Any, ...]]:
    """Hostname, kind and text of the path, conditions, and where it leads."""
    shown = []
    for spec in specs(found, "Route").values():
        action = spec["action"]
        to = {each["pool"].split("-")[1]: each.get("weight", 1) for each in action.get("pools", ())}
        target = next(iter(to)) if len(to) == 1 else to or action.get("redirect") or action["fixed_response"]["status"]
        more = {name: spec[name] for name in ("headers", "cookies", "scheme") if name in spec}
        shown.append((spec["hostname"], spec["path_kind"], spec["path"], more, target))
    return shown


def said(found: Import, text: str) -> tuple[Verdict, str]:
    """The verdict of the field or annotation that the text begins."""
    (line,) = [each for each in found.report if each.text.startswith((text, NGINX + text))]
    return line.verdict, " ".join(line.reasons)


def rules_of(found: Import) -> dict[str, Any]:
    (route,) = specs(found, "Route").values()
    rules: dict[str, Any] = route.get("rules", {})
    return rules


def test_prefixes_are_whole_segments_and_exact_paths_are_exact() -> None:
    found = read(ingress(rules={"x.example.com": [
        ("/api/", "Prefix", "a"), ("/api", "Exact", "b"), ("/", "Prefix", "c"),
    ]}))  # fmt: skip
    assert sorted(routes(found)) == [
        ("x.example.com", "exact", "/api", {}, "b"),
        ("x.example.com", "prefix", "/", {}, "c"),
        ("x.example.com", "prefix", "/api", {}, "a"),
    ]
    assert {line.verdict for line in found.report} <= {Verdict.MAPPED, Verdict.NODE_SETTING}


def test_a_path_of_the_controllers_own_kind_is_a_prefix_and_the_difference_is_said() -> None:
    found = read(ingress(rules={"x.example.com": [("/api", "ImplementationSpecific", "a")]}))
    assert routes(found) == [("x.example.com", "prefix", "/api", {}, "a")]
    verdict, why = said(found, "spec.rules[0].http.paths[0].path: /api")
    assert (verdict, "apiary" in why) == (Verdict.DIFFERENT, True)


def test_a_wildcard_is_one_label_and_an_ingress_without_host_is_for_any() -> None:
    found = read(ingress(rules={"*.example.com": [("/", "Prefix", "a")], "": [("/", "Prefix", "b")]}))
    assert [(each[0], each[-1]) for each in routes(found)] == [("*", "b"), ("*.example.com", "a")]


def test_what_no_path_of_a_host_takes_does_not_go_to_a_wider_host() -> None:
    found = read(ingress(rules={"x.example.com": [("/app", "Prefix", "a")], "*.example.com": [("/", "Prefix", "b")]}))
    assert ("x.example.com", "prefix", "/", {}, 404) in routes(found)
    alone = read(ingress(rules={"x.example.com": [("/app", "Prefix", "a")], "*.example.org": [("/", "Prefix", "b")]}))
    assert len(routes(alone)) == 2


def test_the_default_backend_takes_the_rest_of_its_own_hosts() -> None:
    one = ingress(rules={"x.example.com": [("/app", "Prefix", "a")]})
    one["spec"]["defaultBackend"] = backend("b")
    every = ingress("any")
    every["spec"] = {"ingressClassName": "nginx", "defaultBackend": backend("c")}
    assert routes(read(one, every)) == [
        ("*", "prefix", "/", {}, "c"),
        ("x.example.com", "prefix", "/app", {}, "a"),
        ("x.example.com", "prefix", "/", {}, "b"),
    ]


def test_http_is_redirected_with_308_where_tls_is_configured_and_nowhere_else() -> None:
    tls = [{"hosts": ["x.example.com"], "secretName": "site"}]
    rules = {host: [("/", "Prefix", "a")] for host in ("x.example.com", "y.example.com")}
    found = read(ingress(rules=rules, tls=tls))
    assert routes(found) == [
        ("x.example.com", "prefix", "/", {"scheme": "http"}, {"code": 308, "scheme": "https"}),
        ("x.example.com", "prefix", "/", {"scheme": "https"}, "a"),
        ("y.example.com", "prefix", "/", {}, "a"),
    ]
    assert found.needs == ("The certificate of the Secret default/site (--certificate default/site=NAME).",)
    off = read(ingress(rules=rules, tls=tls, ssl_redirect="false"), certificates={"default/site": "ours"})
    assert [each[3] for each in routes(off)] == [{}, {}]
    assert specs(off, "LoadBalancer")["nginx"]["listeners"][1]["certificates"] == ["ours"]
    forced = read(ingress(force_ssl_redirect="true"))
    assert [each[3] for each in routes(forced)] == [{"scheme": "http"}, {"scheme": "https"}]


def test_the_rest_of_a_host_is_redirected_as_its_paths_are_and_traefik_serves_tls_alone() -> None:
    tls = [{"hosts": ["x.example.com"], "secretName": "site"}]
    web = ingress(rules={"x.example.com": [("/a", "Prefix", "a")]}, tls=tls)
    web["spec"]["defaultBackend"] = backend("b")
    assert [(each[2], each[3]["scheme"]) for each in routes(read(web))] == [
        ("/a", "http"), ("/a", "https"), ("/", "http"), ("/", "https"),
    ]  # fmt: skip
    traefik = ingress(tls=tls)
    traefik["spec"]["ingressClassName"] = "traefik"
    assert routes(read(traefik)) == [("x.example.com", "prefix", "/", {"scheme": "https"}, "a")]


def test_groups_of_a_rewrite_keep_the_rest_of_the_path() -> None:
    rules = {"x.example.com": [("/api(/|$)(.*)", "ImplementationSpecific", "a")]}
    (route,) = specs(read(ingress(rules=rules, rewrite_target="/v2/$2")), "Route").values()
    assert (route["path_kind"], route["path"], route["prefix_rewrite"]) == ("prefix", "/api", "/v2")


def test_a_rewrite_without_groups_replaces_the_whole_path_and_a_path_that_is_its_target_stays() -> None:
    rules = {"x.example.com": [("/api", "Prefix", "a")]}
    assert rules_of(read(ingress(rules=rules, rewrite_target="/"))) == {"rewrite": {"path": "/"}}
    assert rules_of(read(ingress(rewrite_target="/"))) == {}


def test_a_longer_pattern_comes_before_a_shorter_prefix() -> None:
    found = read(ingress(use_regex="true", rules={"x.example.com": [
        ("/api", "Prefix", "a"), ("/api/v[0-9]+/users", "ImplementationSpecific", "b"), ("/other", "Prefix", "c"),
    ]}))  # fmt: skip
    assert routes(found) == [
        ("x.example.com", "regex", "/api/v[0-9]+/users.*", {}, "b"),
        ("x.example.com", "prefix", "/other", {}, "c"),
        ("x.example.com", "regex", "/api(/.*)?", {}, "a"),
    ]


def test_a_pattern_that_no_route_can_have_is_said_and_left_out() -> None:
    rules = {"x.example.com": [("/(?!admin).*", "ImplementationSpecific", "a"), ("/", "Prefix", "b")]}
    found = read(ingress(rules=rules, use_regex="true"))
    assert said(found, "spec.rules[0].http.paths[0].path:")[0] is Verdict.NOT_POSSIBLE
    assert [each[-1] for each in routes(found)] == ["b"]
    assert found.needs == ()
    (need,) = read(ingress(rules=rules, use_regex="true", whitelist_source_range="10.0.0.0/8")).needs
    assert "/(?!admin).*" in need, "what protects it would be lost without a word"


def test_a_canary_joins_the_ingress_of_its_host_and_path() -> None:
    canary = ingress("next", {"x.example.com": [("/", "Prefix", "b")]}, canary="true", canary_weight="10",
                     canary_by_header="X-Canary", canary_by_cookie="beta", enable_cors="true")  # fmt: skip
    found = read(ingress(), canary)
    header, cookie = ({"name": name} for name in ("X-Canary", "beta"))
    conditions = [
        ({key: [{**match, "value": value}]}, to)
        for key, match in (("headers", header), ("cookies", cookie)) for value, to in (("always", "b"), ("never", "a"))
    ]  # fmt: skip
    assert [(each[3], each[4]) for each in routes(found)] == [*conditions, ({}, {"a": 90, "b": 10})]
    assert said(found, "enable-cors")[0] is Verdict.DEAD
    assert said(read(canary), "spec.rules[0].http.paths[0].path:")[0] is Verdict.DEAD


def test_a_canary_may_look_for_a_value_and_only_that_one() -> None:
    canary = ingress("next", {"x.example.com": [("/", "Prefix", "b")]}, canary="true",
                     canary_by_header="X-Region", canary_by_header_value="eu")  # fmt: skip
    shown = routes(read(ingress(), canary))
    assert [(each[3], each[4]) for each in shown] == [
        ({"headers": [{"name": "X-Region", "value": "eu"}]}, "b"),
        ({}, "a"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "redirect"),
    [
        ("permanent_redirect", "https://y.example.com/new",
         {"code": 301, "scheme": "https", "host": "y.example.com", "path": "/new", "keep_query": False}),
        ("temporal_redirect", "https://y.example.com$request_uri",
         {"code": 302, "scheme": "https", "host": "y.example.com", "keep_query": True}),
    ],
)  # fmt: skip
def test_redirects_lead_to_a_url_or_keep_the_request(name: str, value: str, redirect: dict[str, Any]) -> None:
    assert [each[-1] for each in routes(read(annotated(name, value)))] == [redirect]


@pytest.mark.parametrize(
    "name",
    ["auth_url", "auth_snippet", "auth_tls_match_cn", "auth_new_word", "nginx.com/jwt-key", "a.example/allowlist"],
)
def test_what_protects_a_path_and_has_no_place_closes_it(name: str) -> None:
    found = read(annotated(name, "https://sso.example.com/verify"))
    assert routes(found) == [("x.example.com", "prefix", "/", {}, 503)]
    verdict, why = said(found, name if "/" in name else name.replace("_", "-"))
    assert (verdict, "503" in why) == (Verdict.NOT_POSSIBLE, True)
    assert routes(read(ingress())) == [("x.example.com", "prefix", "/", {}, "a")]


def test_networks_passwords_and_limits_become_rules() -> None:
    people = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "people"},
              "data": {"auth": "YWxpY2U6JGFwcjEkeHg="}}  # fmt: skip
    guarded = ingress(whitelist_source_range="10.0.0.0/8, 192.0.2.1", limit_rps="10", auth_type="basic",
                      auth_secret="people")  # fmt: skip
    found = read(guarded, people, passwords={"alice": "a long password"})
    assert rules_of(found) == {
        "access": {"allow": ["default-web-allow"]},
        "basic_auth": {"users": {"alice": "a long password"}, "keep_header": True},
        "client_limit": {"requests": 10, "per": "second", "burst": 50, "counted_for": "hostname"},
    }
    networks = specs(found, "NetworkList")["default-web-allow"]["entries"]
    assert networks == [{"network": "10.0.0.0/8"}, {"network": "192.0.2.1/32"}]
    assert read(guarded, people).needs == ("The password of user alice (--password alice=…).",)
    assert routes(read(guarded))[0][-1] == 503, "without its Secret nobody is let in"


def test_a_protected_path_is_protected_in_every_spelling_that_the_controller_protects() -> None:
    web = ingress(rules={"x.example.com": [("/", "Prefix", "a"), ("/x", "Prefix", "c")]})
    rules = {"x.example.com": [("/x/admin", "ImplementationSpecific", "b")]}
    found = read(web, ingress("admin", rules, whitelist_source_range="10.0.0.0/8"))
    assert [(each[1], each[2], each[-1]) for each in routes(found)] == [
        ("prefix", "/x/admin", "b"), ("regex", "/x/admin.*", "b"), ("regex", "/x(/.*)?", "c"), ("prefix", "/", "a"),
    ]  # fmt: skip
    in_any_case = read(web, ingress("admin", rules, whitelist_source_range="10.0.0.0/8", use_regex="true"))
    assert ("regex", "/[xX]/[aA][dD][mM][iI][nN].*", "b") in [
        (each[1], each[2], each[-1]) for each in routes(in_any_case)
    ]
    plain = read(web, ingress("admin", rules))
    assert len(routes(plain)) == 3, "what is open has no need of it"


@pytest.mark.parametrize(
    ("text", "ignoring"),
    [("/a1", "/[aA]1"), (r"/\d[a-f]", r"/\d[a-fA-F]"), ("/[x9](b|C)", "/[x9X]([bB]|[cC])"), (r"/\.\w", r"/\.\w")],
)
def test_a_pattern_takes_letters_in_both_cases(text: str, ignoring: str) -> None:
    assert ignoring_case(text) == ignoring


def test_a_wrong_list_of_networks_closes_the_path() -> None:
    assert routes(read(ingress(whitelist_source_range="everybody")))[0][-1] == 503


def test_the_way_to_servers_is_the_pools() -> None:
    found = read(ingress(
        backend_protocol="GRPCS", proxy_read_timeout="90", proxy_next_upstream="error http_502",
        proxy_next_upstream_tries="2", upstream_hash_by="$remote_addr",
    ))  # fmt: skip
    (pool,) = specs(found, "Pool").values()
    assert {name: pool[name] for name in pool.keys() - {"backends", "protocol"}} == {
        "balance": "source", "connect_timeout_ms": 5000, "server_timeout_ms": 90_000, "tunnel_timeout_ms": 90_000,
        "http_version": "2", "server_tls": {"verify": "none"},
        "retries": {"on": ["connect", "no_answer", "502"], "attempts": 1},
    }  # fmt: skip


def test_one_service_with_other_settings_is_another_pool() -> None:
    found = read(ingress(), ingress("slow", {"y.example.com": [("/", "Prefix", "a")]}, proxy_read_timeout="300"))
    assert sorted(specs(found, "Pool")) == ["default-a-80", "default-a-80-2"]


def test_cors_says_what_the_controller_says_by_itself() -> None:
    cors = rules_of(read(ingress(enable_cors="true", cors_allow_origin="https://y.example.com")))["cors"]
    assert (cors["origins"], cors["credentials"]) == (["https://y.example.com"], True)
    assert set(cors["methods"]) == {"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"}
    assert rules_of(read(ingress(enable_cors="true")))["cors"]["credentials"] is False


def test_servers_are_ready_endpoints_and_else_asked_for() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "e"}, "spec": {"ports": [{"port": 80}]}}
    slices = {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "e-1", "labels": {"kubernetes.io/service-name": "e"}}, "ports": [{"port": 8080}],
        "endpoints": [{"addresses": ["10.1.0.1"]}, {"addresses": ["10.1.0.2"], "conditions": {"ready": False}}],
    }  # fmt: skip
    web = ingress(rules={"x.example.com": [("/", "Prefix", "e")]})
    (pool,) = specs(read(web, service, slices), "Pool").values()
    assert pool["backends"][0]["servers"] == [{"name": "e-1", "address": "10.1.0.1", "port": 8080}]
    asked = read(web, service)
    assert any("default/e:80=" in need and "dns://" in need for need in asked.needs)


def test_a_pool_may_follow_the_name_of_a_headless_service() -> None:
    source = "dns://e.default.svc.cluster.local:8080"
    found = read_kubernetes(
        yaml.safe_dump(ingress(rules={"x.example.com": [("/", "Prefix", "e")]})), {},
        ImportOptions(servers={"default/e:80": source}),
    )  # fmt: skip
    (pool,) = specs(found, "Pool").values()
    assert (pool["backends"][0]["servers_from"], found.needs) == (source, ())


def test_clients_present_certificates_where_an_annotation_says_so_and_never_over_http() -> None:
    tls = [{"hosts": ["x.example.com"], "secretName": "site"}]
    guarded = ingress(tls=tls, auth_tls_secret="default/ca", ssl_redirect="false")
    authority = Authority().pem
    ca = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ca"}, "stringData": {"ca.crt": authority}}
    found = read(guarded, ca)
    assert routes(found) == [("x.example.com", "prefix", "/", {"scheme": "https"}, "a")]
    (_, https) = specs(found, "LoadBalancer")["nginx"]["listeners"]
    assert https["client_certificates"] == [{"mode": "required", "ca": authority, "hostnames": ["x.example.com"]}]
    assert routes(read(guarded))[0][-1] == 503, "without the authority nobody is let in"
    assert any("ca.crt" in need for need in read(guarded).needs)


def test_tls_is_passed_on_only_where_the_port_ends_it_for_nobody() -> None:
    passed = ingress(ssl_passthrough="true")
    (http, tls) = specs(read(passed), "LoadBalancer")["nginx"]["listeners"]
    assert (http["port"], tls["sni_routes"]) == (80, [{"hostname": "x.example.com", "pool": "default-a-80"}])
    other = ingress("tls", {"y.example.com": [("/", "Prefix", "b")]}, [{"hosts": ["y.example.com"], "secretName": "s"}])
    assert said(read(passed, other), "ssl-passthrough")[0] is Verdict.NOT_POSSIBLE


def test_two_ingresses_of_one_host_and_path_are_told_apart_by_age() -> None:
    young, old = ingress("young"), ingress("old", {"x.example.com": [("/", "Prefix", "b")]})
    young["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"] = "2025-02-01", "2025-01-01"
    found = read(young, old)
    assert [each[-1] for each in routes(found)] == ["b"]
    dead = [line.text for line in found.report if line.verdict is Verdict.DEAD]
    assert "spec.rules[0].http.paths[0].path: /" in dead


def test_two_classes_of_one_port_need_addresses() -> None:
    other = ingress("other", {"y.example.com": [("/", "Prefix", "b")]})
    other["spec"]["ingressClassName"] = "internal"
    (need,) = read(ingress(), other).needs
    assert need.endswith("(--address internal=STATIC_IP).")
    found = read(ingress(), other, addresses={"internal": "inside"})
    listeners = {name: spec["listeners"][0] for name, spec in specs(found, "LoadBalancer").items()}
    assert (found.needs, listeners["internal"]["static_ip"], "static_ip" in listeners["nginx"]) == ((), "inside", False)


def test_equal_manifests_give_equal_objects() -> None:
    assert read(ingress()).documents == read(ingress()).documents


def test_redirects_of_servers_and_a_prefix_that_they_are_told() -> None:
    found = read(ingress(proxy_redirect_from="http://a.internal/", proxy_redirect_to="/", rewrite_target="/x"))
    assert rules_of(found)["response_rewrite"] == {"location_prefix": "http://a.internal/", "location_replacement": "/"}
    told = read(ingress(x_forwarded_prefix="/shop", rewrite_target="/x"))
    assert rules_of(told)["request_headers"]["set"] == {"X-Forwarded-Prefix": "/shop"}
    assert said(told, "x-forwarded-prefix")[0] is Verdict.MAPPED
    alone = read(ingress(x_forwarded_prefix="/shop"))
    assert said(alone, "x-forwarded-prefix")[0] is Verdict.DIFFERENT


@pytest.mark.parametrize(("start", "to"), [("off", "/"), ("default", "/"), ("~^http://a/(.*)", "/$1")])
def test_redirects_of_servers_that_stay_as_they_are(start: str, to: str) -> None:
    found = read(ingress(proxy_redirect_from=start, proxy_redirect_to=to))
    assert "response_rewrite" not in str(found.documents)
    wanted = {"off": Verdict.MAPPED, "default": Verdict.DIFFERENT}.get(start, Verdict.NOT_POSSIBLE)
    assert said(found, "proxy-redirect-from")[0] is wanted


@pytest.mark.parametrize("version", ["extensions/v1beta1", "networking.k8s.io/v1beta1"])
def test_an_ingress_as_it_was_written_before_v1_is_read(version: str) -> None:
    paths = [{"path": "/", "backend": {"serviceName": "a", "servicePort": 80}}]
    spec: dict[str, Any] = {
        "backend": {"serviceName": "b", "servicePort": 80},
        "rules": [{"host": "x.example.com", "http": {"paths": paths}}],
    }
    old = {"apiVersion": version, "kind": "Ingress", "metadata": {"name": "web"}, "spec": spec}
    found = read(old)
    assert not [each for each in found.report if each.verdict is Verdict.NOT_POSSIBLE]
    assert [each[-1] for each in routes(found)] == ["a"]
    del spec["rules"]
    assert routes(read(old)) == [("*", "prefix", "/", {}, "b")]


def test_a_variable_that_nobody_replaced_is_named_as_one() -> None:
    verdict, why = said(read(ingress(rules={"${HOST}": [("/", "Prefix", "a")]})), "spec.rules[0].host")
    assert verdict is Verdict.NOT_POSSIBLE
    assert "Replace this variable" in why


def test_a_snippet_of_headers_alone_becomes_headers() -> None:
    lines = (
        "# what browsers are told",
        'more_set_headers "X-Frame-Options: DENY";',
        "more_clear_headers Server;",
        "proxy_set_header X-Tenant $http_x_team;",
    )
    found = read(ingress(configuration_snippet="\n".join(lines)))
    assert said(found, "configuration-snippet")[0] is Verdict.MAPPED
    assert rules_of(found) == {
        "response_headers": {"set": {"X-Frame-Options": "DENY"}, "remove": ["Server"]},
        "request_headers": {"set": {"X-Tenant": "{header:x-team}"}},
    }


@pytest.mark.parametrize(
    "line",
    [
        "deny all;",
        "if ($host = a) { return 403; }",
        "proxy_set_header Host a;",
        'more_set_headers "X-A: $upstream_addr";',
        "more_set_headers -s 404 'X-A: b';",
        'more_set_headers "X-A: b"',
        "}",
        "more_clear_headers X-*;",
    ],
)
def test_any_other_snippet_is_not_read(line: str) -> None:
    found = read(ingress(configuration_snippet=f'more_set_headers "X-B: c";\n{line}'))
    assert said(found, "configuration-snippet")[0] is Verdict.NOT_POSSIBLE
    assert "X-B" not in str(found.documents)


def test_paths_of_the_controllers_of_clouds_end_with_a_star_or_are_whole() -> None:
    kind = "ImplementationSpecific"
    cloud = ingress(rules={"x.example.com": [("/*", kind, "a"), ("/api/*", kind, "b"), ("/one", kind, "c")]})
    cloud["spec"]["ingressClassName"] = "alb"
    found = read(cloud)
    wanted = {("prefix", "/", "a"), ("prefix", "/api", "b"), ("exact", "/one", "c")}
    assert {(kind, path, target) for _, kind, path, _, target in routes(found)} == wanted
    assert said(found, "spec.rules[0].http.paths[0].path:")[0] is Verdict.MAPPED
    assert said(found, "spec.rules[0].http.paths[1].path:")[0] is Verdict.DIFFERENT
    del cloud["spec"]["rules"][0]["http"]["paths"][0]["path"]
    assert len(routes(read(cloud))) == len(wanted)
    assert ("x.example.com", "prefix", "/", {}, "a") in routes(read(cloud))
