"""The Gateway API as routes: listeners, hostnames, matches, filters, weights, and references that need a grant."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apps.definitions.reading.documents import read_object
from apps.importing.contract import Import
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict
from tests.authorities import Authority

API = "gateway.networking.k8s.io/v1"
SERVERS = {f"{space}/{name}:80": "10.0.0.1:80" for space in ("default", "other") for name in "abcd"}


def read(*objects: dict[str, Any], **options: Any) -> Import:
    text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper, sort_keys=False)
    return read_kubernetes(text, {}, ImportOptions(servers=SERVERS, certificates={"default/tls": "ours"}, **options))


def gateway(*listeners: dict[str, Any], name: str = "edge") -> dict[str, Any]:
    usual = {"name": "http", "port": 80, "protocol": "HTTP"}
    spec = {"gatewayClassName": "any", "listeners": list(listeners or [usual])}
    return {"apiVersion": API, "kind": "Gateway", "metadata": {"name": name}, "spec": spec}


def route(
    *rules: dict[str, Any],
    name: str = "web",
    hosts: tuple[str, ...] = ("x.example.com",),
    kind: str = "HTTPRoute",
    namespace: str = "default",
    **parent: Any,
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    spec = {"parentRefs": [{"name": "edge", **parent}], "hostnames": list(hosts), "rules": list(rules)}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def rule(*backends: str, **more: Any) -> dict[str, Any]:
    return {**more, "backendRefs": [{"name": each, "port": 80} for each in backends]}


def prefix(path: str, **more: Any) -> dict[str, Any]:
    return {"path": {"type": "PathPrefix", "value": path}, **more}


def specs(found: Import, kind: str) -> dict[str, dict[str, Any]]:
    for document in found.documents:
        read_object(document)
    return {each["name"]: each["spec"] for each in found.documents if each["kind"] == kind}


def routes(found: Import) -> list[tuple[Any, ...]]:
    """Hostname, path, scheme, and where it leads."""
    shown = []
    for spec in specs(found, "Route").values():
        action = spec["action"]
        to = {each["pool"].split("-")[1]: each.get("weight") for each in action.get("pools", ())}
        target = next(iter(to)) if len(to) == 1 else to or action.get("redirect") or action["fixed_response"]["status"]
        shown.append((spec["hostname"], spec["path"], spec.get("scheme"), target))
    return shown


def verdicts(found: Import, part: str) -> set[Verdict]:
    return {line.verdict for line in found.report if part in line.text}


def test_the_first_ports_of_http_and_https_are_one_load_balancer_and_others_are_their_own() -> None:
    tls = {"mode": "Terminate", "certificateRefs": [{"name": "tls"}]}
    found = read(
        gateway(
            {"name": "http", "port": 80, "protocol": "HTTP"},
            {"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls},
            {"name": "more", "port": 8080, "protocol": "HTTP"},
        ),
        route(rule("a")),
    )
    made = {name: [(each["protocol"], each["port"]) for each in spec["listeners"]]
            for name, spec in specs(found, "LoadBalancer").items()}  # fmt: skip
    assert made == {"edge": [("http", 80), ("https", 443)], "edge-8080": [("http", 8080)]}
    assert [(spec["load_balancer"], spec.get("scheme")) for spec in specs(found, "Route").values()] == [
        ("edge", None), ("edge-8080", "http"),
    ]  # fmt: skip


def test_a_route_of_one_listener_is_of_its_scheme() -> None:
    tls = {"certificateRefs": [{"name": "tls"}]}
    found = read(
        gateway({"name": "http", "port": 80, "protocol": "HTTP"},
                {"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls}),
        route(rule("a"), sectionName="https"),
        route({"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}]},
              name="up", sectionName="http"),
    )  # fmt: skip
    assert sorted(routes(found), key=str) == [
        ("x.example.com", "/", "http", {"code": 301, "scheme": "https"}),
        ("x.example.com", "/", "https", "a"),
    ]


@pytest.mark.parametrize(
    ("listener", "hosts", "shared"),
    [
        ("", ("x.example.com",), ["x.example.com"]),
        ("", (), ["*"]),
        ("*.example.com", (), ["**.example.com"]),
        ("*.example.com", ("x.example.com", "a.b.example.com", "example.com"), ["x.example.com", "a.b.example.com"]),
        ("x.example.com", ("*.example.com",), ["x.example.com"]),
        ("*.b.example.com", ("*.example.com",), ["**.b.example.com"]),
        ("x.example.com", ("y.example.com",), []),
        ("*.example.com", ("myexample.com",), []),
    ],
)
def test_a_route_is_for_the_hostnames_that_it_shares_with_its_listener(
    listener: str, hosts: tuple[str, ...], shared: list[str]
) -> None:
    named = {"hostname": listener} if listener else {}
    found = read(gateway({"name": "http", "port": 80, "protocol": "HTTP", **named}), route(rule("a"), hosts=hosts))
    assert [each[0] for each in routes(found)] == shared
    if not shared:
        assert verdicts(found, "parentRefs") == {Verdict.NOT_POSSIBLE}


def test_hosts_of_a_narrower_listener_do_not_fall_to_a_wider_one() -> None:
    wide = {"name": "wide", "port": 80, "protocol": "HTTP", "hostname": "*.example.com"}
    narrow = {"name": "narrow", "port": 80, "protocol": "HTTP", "hostname": "x.example.com"}
    found = read(
        gateway(wide, narrow),
        route(rule("a"), hosts=(), sectionName="wide"),
        route(rule("b", matches=[prefix("/b")]), name="other", hosts=(), sectionName="narrow"),
    )
    assert ("x.example.com", "/", "http", 404) in routes(found)


def test_equal_matches_go_to_the_older_route() -> None:
    young, old = route(rule("a"), name="a"), route(rule("b"), name="b")
    young["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"] = "2025-02-01", "2025-01-01"
    twin = read(gateway(), young, old)
    assert routes(twin) == [("x.example.com", "/", "http", "b")]
    by_name = read(gateway(), route(rule("b"), name="b"), route(rule("a"), name="a"))
    assert routes(by_name) == [("x.example.com", "/", "http", "a")]


def test_conditions_in_another_order_are_the_same_match() -> None:
    headers = [{"name": "X-B", "value": "1"}, {"name": "x-a", "value": "2"}]
    again = [{"name": "X-A", "value": "2"}, {"name": "x-b", "value": "1"}]
    found = read(gateway(), route(rule("a", matches=[prefix("/", headers=headers)]),
                                  rule("b", matches=[prefix("/", headers=again)])))  # fmt: skip
    assert [each[-1] for each in routes(found)] == ["a"]


def test_matches_are_alternatives_and_their_parts_belong_together() -> None:
    match = prefix("/api/", method="POST", headers=[{"name": "X-A", "value": "1"}],
                   queryParams=[{"name": "q", "type": "RegularExpression", "value": "[0-9]+"}])  # fmt: skip
    found = read(gateway(), route(rule("a", matches=[match, {"path": {"type": "Exact", "value": "/x"}}])))
    first, second = specs(found, "Route").values()
    assert (first["path"], first["path_kind"], first["methods"]) == ("/api", "prefix", ["POST"])
    assert first["headers"] == [{"name": "X-A", "match": "equals", "value": "1"}]
    assert first["query"] == [{"name": "q", "match": "regex", "value": "[0-9]+"}]
    assert (second["path"], second["path_kind"]) == ("/x", "exact")


def test_a_match_that_no_route_can_have_is_left_out_and_said() -> None:
    match = prefix("/", headers=[{"name": "X-Forwarded-For", "value": "1"}])
    found = read(gateway(), route(rule("a", matches=[match, prefix("/b")])))
    assert [each[1] for each in routes(found)] == ["/b"]
    assert Verdict.NOT_POSSIBLE in verdicts(found, "matches[0]")


def test_another_namespace_needs_a_grant_for_exactly_that() -> None:
    def asked(*more: dict[str, Any]) -> Any:
        return routes(read(gateway(), route({"backendRefs": [{"name": "a", "namespace": "other", "port": 80}]}), *more))

    def grant(
        namespace: str = "other", source: str = "default", name: str = "", group: str = "", kind: str = "Service"
    ) -> dict[str, Any]:
        to = {"group": group, "kind": kind, **({"name": name} if name else {})}
        spec = {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": source}], "to": [to]}
        metadata = {"name": "g", "namespace": namespace}
        return {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": metadata,
                "spec": spec}  # fmt: skip

    refused = [("x.example.com", "/", "http", 500)]
    assert asked() == refused
    for wrong in (
        grant(source="third"), grant(namespace="default"), grant(name="b"), grant(group="other"), grant(kind="Secret"),
    ):  # fmt: skip
        assert asked(wrong) == refused
    for right in (grant(), grant(name="a")):
        assert [each[-1] for each in asked(right)] == ["a"]


def test_routes_of_other_namespaces_attach_only_where_the_listener_lets_them() -> None:
    def listened(**scope: Any) -> list[Any]:
        listener = {"name": "http", "port": 80, "protocol": "HTTP", **({"allowedRoutes": scope} if scope else {})}
        return routes(read(gateway(listener), route(rule("a"), namespace="other") | {
            "spec": route(rule("a"))["spec"] | {"parentRefs": [{"name": "edge", "namespace": "default"}]}
        }))  # fmt: skip

    assert listened() == []
    assert listened(namespaces={"from": "All"})
    assert listened(namespaces={"from": "All"}, kinds=[{"kind": "GRPCRoute"}]) == []


def test_weights_hold_and_a_share_of_nothing_gets_nothing() -> None:
    refs = [{"name": "a", "port": 80, "weight": 9}, {"name": "b", "port": 80, "weight": 0},
            {"name": "a", "port": 80, "weight": 1}, {"name": "c", "port": 80}]  # fmt: skip
    assert routes(read(gateway(), route({"backendRefs": refs})))[0][-1] == {"a": 10, "b": 0, "c": 1}
    large = [{"name": "a", "port": 80, "weight": 900_000}, {"name": "b", "port": 80, "weight": 100_000}]
    assert routes(read(gateway(), route({"backendRefs": large})))[0][-1] == {"a": 1000, "b": 111}
    nothing = route({"backendRefs": [{"name": "a", "port": 80, "weight": 0}]})
    assert routes(read(gateway(), nothing))[0][-1] == 500


def test_a_share_of_a_backend_that_is_none_is_said() -> None:
    refs = [{"name": "a", "port": 80}, {"name": "x", "kind": "Bucket", "group": "s3", "port": 80}]
    found = read(gateway(), route({"backendRefs": refs}))
    assert routes(found)[0][-1] == "a"
    assert verdicts(found, "backendRefs[1]") == {Verdict.NOT_POSSIBLE}


def test_filters_change_headers_paths_and_origins() -> None:
    found = read(gateway(), route(rule("a", matches=[prefix("/old")], filters=[
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {
            "set": [{"name": "X-A", "value": "1"}, {"name": "Host", "value": "in.example.com"}], "remove": ["X-B"]}},
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [{"name": "X-C", "value": "2"}]}},
        {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new/"}}},
        {"type": "CORS", "cors": {"allowOrigins": ["https://y.example.com"], "allowCredentials": True}},
    ])))  # fmt: skip
    (made,) = specs(found, "Route").values()
    assert made["prefix_rewrite"] == "/new"
    assert made["rules"] == {
        "request_headers": {"set": {"X-A": "1"}, "remove": ["X-B"]}, "rewrite": {"host": "in.example.com"},
        "response_headers": {"add": {"X-C": "2"}},
        "cors": {"origins": ["https://y.example.com"], "methods": ["GET", "HEAD", "POST"], "max_age_s": 5,
                 "credentials": True},
    }  # fmt: skip


def test_a_header_with_braces_is_never_taken_for_a_variable() -> None:
    change = {"set": [{"name": "X-A", "value": "{host}"}]}
    found = read(gateway(), route(rule("a", filters=[
        {"type": "RequestHeaderModifier", "requestHeaderModifier": change},
    ])))  # fmt: skip
    (made,) = specs(found, "Route").values()
    assert "rules" not in made
    assert verdicts(found, "{host}") == {Verdict.NOT_POSSIBLE}


@pytest.mark.parametrize(
    ("filters", "target"),
    [
        ({"type": "ExtensionRef", "extensionRef": {"group": "x", "kind": "Y", "name": "z"}}, 500),
        ({"type": "RequestRedirect", "requestRedirect": {"statusCode": 301}}, 500),
        ({"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "b", "port": 80}}}, "a"),
    ],
)
def test_a_filter_that_is_not_read_is_never_skipped_silently(filters: dict[str, Any], target: Any) -> None:
    found = read(gateway(), route(rule("a", filters=[filters])))
    assert routes(found)[0][-1] == target
    assert Verdict.NOT_POSSIBLE in verdicts(found, "filters[0]")


def test_times_retries_and_cookies_of_a_rule() -> None:
    found = read(gateway(), route(rule("a", timeouts={"request": "1m30s", "backendRequest": "500ms"},
                                       retry={"attempts": 2, "codes": [503, 418]},
                                       sessionPersistence={"sessionName": "s", "idleTimeout": "1h"})))  # fmt: skip
    (made,) = specs(found, "Route").values()
    (pool,) = specs(found, "Pool").values()
    assert made["rules"] == {"timeouts": {"response_ms": 500}}
    assert pool["retries"] == {"attempts": 2, "on": ["connect", "no_answer", "503"]}
    assert pool["persistence"] == {"by": "cookie", "cookie": "s", "idle_s": 3600}
    assert verdicts(found, "418") == {Verdict.NOT_POSSIBLE}


def test_grpc_is_a_path_and_http_2() -> None:
    method = {"service": "a.v1.B", "method": "Get"}
    found = read(gateway(), route(rule("a", matches=[
        {"method": method}, {"method": {"service": "a.v1.B"}}, {"method": {"method": "Get"}}, {},
    ]), kind="GRPCRoute"))  # fmt: skip
    shown = [(spec["path_kind"], spec["path"]) for spec in specs(found, "Route").values()]
    assert shown == [("exact", "/a.v1.B/Get"), ("prefix", "/a.v1.B"), ("regex", "/[^/]+/Get"), ("prefix", "/")]
    (pool,) = specs(found, "Pool").values()
    assert pool["http_version"] == "2"


def test_tls_is_passed_on_by_name_and_a_tcp_port_has_one_pool() -> None:
    found = read(
        gateway({"name": "tls", "port": 443, "protocol": "TLS", "tls": {"mode": "Passthrough"}},
                {"name": "tcp", "port": 5432, "protocol": "TCP"}, {"name": "idle", "port": 9, "protocol": "TCP"}),
        route(rule("a"), kind="TLSRoute", sectionName="tls"),
        route(rule("b"), kind="TCPRoute", name="db", hosts=(), sectionName="tcp"),
    )  # fmt: skip
    tls, tcp = specs(found, "LoadBalancer")["edge"]["listeners"]
    assert tls["sni_routes"] == [{"hostname": "x.example.com", "pool": "default-a-80"}]
    assert (tcp["port"], tcp["default_pool"]) == (5432, "default-b-80")
    assert {each["protocol"] for each in specs(found, "Pool").values()} == {"tcp"}


def test_a_policy_says_how_servers_prove_who_they_are() -> None:
    def secured(**validation: Any) -> Import:
        spec = {"targetRefs": [{"group": "", "kind": "Service", "name": "a"}],
                "validation": {"hostname": "a.internal.example", **validation}}  # fmt: skip
        policy = {"apiVersion": API, "kind": "BackendTLSPolicy", "metadata": {"name": "p"}, "spec": spec}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": authority}}
        return read(gateway(), route(rule("a")), policy, config)

    authority = Authority().pem
    (pool,) = specs(secured(caCertificateRefs=[{"kind": "ConfigMap", "group": "", "name": "ca"}]), "Pool").values()
    assert pool["server_tls"] == {"verify": "ca", "ca": authority, "server_name": "a.internal.example"}
    (pool,) = specs(secured(wellKnownCACertificates="System"), "Pool").values()
    assert pool["server_tls"]["verify"] == "system"
    assert any("ca.crt" in need for need in secured(caCertificateRefs=[{"kind": "ConfigMap", "name": "gone"}]).needs)


def test_a_listener_without_its_certificate_is_left_out() -> None:
    ref = {"name": "tls", "namespace": "other"}
    found = read(gateway({"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [ref]}}),
                 route(rule("a")))  # fmt: skip
    assert found.documents == ()
    assert Verdict.NOT_POSSIBLE in verdicts(found, "certificateRefs")


@pytest.mark.parametrize(("kind", "name"), [("HTTPRoute", "web"), ("Gateway", "edge")])
def test_routes_that_a_policy_of_another_project_may_protect_stay_closed(kind: str, name: str) -> None:
    def policy(called: str, target: str) -> dict[str, Any]:
        spec = {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": kind, "name": target}]}
        return {"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": called, "metadata": {"name": "p"}, "spec": spec}

    found = read(gateway(), route(rule("a")), policy("SecurityPolicy", name))
    assert routes(found)[0][-1] == 500
    assert verdicts(found, "targetRefs") == {Verdict.NOT_POSSIBLE}
    for other in (policy("SecurityPolicy", "another"), policy("BackendTrafficPolicy", name)):
        assert routes(read(gateway(), route(rule("a")), other))[0][-1] == "a"


def test_clients_present_certificates_where_the_gateway_says_so() -> None:
    def asked(**frontend: Any) -> list[Any]:
        listeners = [
            {"name": f"p{port}", "port": port, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "tls"}]}}
            for port in (443, 8443)
        ]
        front = gateway(*listeners)
        front["spec"]["tls"] = {"frontend": frontend}
        made = specs(read(front, route(rule("a")), config), "LoadBalancer").values()
        return [each.get("client_certificates") for spec in made for each in spec["listeners"]]

    authority = Authority().pem
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": authority}}
    validation = {"validation": {"caCertificateRefs": [{"kind": "ConfigMap", "group": "", "name": "ca"}]}}
    wanted = [{"mode": "required", "ca": authority}]
    assert asked(default=validation) == [wanted, wanted]
    assert asked(perPort=[{"port": 8443, "tls": validation}]) == [None, wanted]


def test_filters_of_the_only_backend_are_those_of_the_rule() -> None:
    filters = [
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [{"name": "X-A", "value": "1"}]}},
        {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}},
    ]
    alone = {"backendRefs": [{"name": "a", "port": 80, "filters": filters}]}
    (made,) = specs(read(gateway(), route(alone)), "Route").values()
    assert made["rules"] == {"request_headers": {"add": {"X-A": "1"}}, "rewrite": {"path": "/x"}}
    set_one = [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "X-A", "value": "1"}]}}]
    one_of_two = {"backendRefs": [{"name": "a", "port": 80, "filters": set_one}, {"name": "b", "port": 80}]}
    pools = specs(read(gateway(), route(one_of_two)), "Pool")
    assert [each.get("request_headers") for each in pools.values()] == [{"X-A": "1"}, None]


def test_a_gateway_that_is_not_in_the_file_is_asked_for() -> None:
    found = read(route(rule("a")))
    assert {line.verdict for line in found.report} <= {Verdict.DIFFERENT, Verdict.MAPPED, Verdict.NODE_SETTING}
    assert found.needs == ("The manifest of the Gateway default/edge, as the HTTPRoute default/web names it.",)


def test_a_route_of_a_mesh_waits_for_no_gateway() -> None:
    service = route(rule("a"))
    service["spec"]["parentRefs"] = [{"kind": "Service", "name": "a"}]
    found = read(gateway(), service)
    assert verdicts(found, "spec.parentRefs") == {Verdict.NOT_POSSIBLE}
    assert not found.needs


def test_a_listener_that_the_gateway_lacks_is_not_asked_for() -> None:
    found = read(gateway(), route(rule("a"), sectionName="other"))
    assert verdicts(found, "spec.parentRefs") == {Verdict.NOT_POSSIBLE}
    assert not found.needs


def test_tls_of_a_listener_that_ends_none_is_dead() -> None:
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "tls": {"mode": "Terminate"}}
    assert verdicts(read(gateway(listener), route(rule("a"))), "tls.mode") == {Verdict.DEAD}


def test_a_grant_that_nobody_needs_is_dead() -> None:
    spec = {"from": [{"group": "g", "kind": "HTTPRoute", "namespace": "x"}], "to": [{"group": "", "kind": "Service"}]}
    grant = {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": "g"}}
    found = read(grant | {"spec": spec})
    assert verdicts(found, "spec.from[0].kind") == {Verdict.DEAD}
