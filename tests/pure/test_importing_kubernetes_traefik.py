"""IngressRoutes of Traefik: what their rules match, and what Middlewares do before requests go on."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apps.compiler.grammar import GrammarError
from apps.importing.contract import Import
from apps.importing.kubernetes.traefik.matching import Match, alternatives
from apps.importing.verdicts import Verdict
from tests.pure.test_importing_kubernetes import ingress, read, specs

SERVICE = [{"name": "a", "port": 80}]


def shown(match: Match) -> tuple[str, str, str]:
    return match.host, match.path.kind, match.path.text


def routed(match: str, *middlewares: dict[str, Any], points: tuple[str, ...] = ("websecure",)) -> Import:
    """One route with these middlewares."""
    made = [
        {"apiVersion": "traefik.io/v1alpha1", "kind": "Middleware", "metadata": {"name": f"m{at}"}, "spec": spec}
        for at, spec in enumerate(middlewares)
    ]
    named = [{"name": f"m{at}"} for at in range(len(made))]
    rule = {"match": match, "kind": "Rule", "services": SERVICE, **({"middlewares": named} if named else {})}
    spec = {"entryPoints": list(points), "routes": [rule]}
    route = {"apiVersion": "traefik.io/v1alpha1", "kind": "IngressRoute", "metadata": {"name": "r"}, "spec": spec}
    return read(*made, yaml.dump(route, sort_keys=False), certificates={"default": "house"})


def only(found: Import) -> dict[str, Any]:
    (spec,) = specs(found, "Route").values()
    return spec


def verdict_at(found: Import, text: str) -> tuple[Verdict, str]:
    (line,) = [each for each in found.report if text in each.text]
    return line.verdict, " ".join(line.reasons)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Host(`a.example`)", [("a.example", "prefix", "/")]),
        ("Host(`a.example`, `b.example`)", [("a.example", "prefix", "/"), ("b.example", "prefix", "/")]),
        (
            "Host(`a.example`) && (Path(`/x`) || PathPrefix(`/y/`))",
            [("a.example", "exact", "/x"), ("a.example", "prefix", "/y")],
        ),
        ("PathRegexp(`^/v[0-9]+/`)", [("*", "regex", "/v[0-9]+/.*")]),
        ("HostRegexp(`^.+\\.example\\.com$`)", [("*.example.com", "prefix", "/")]),
        ("HostRegexp(`{sub:[a-z]+}.example.com`)", [("*.example.com", "prefix", "/")]),
        ("Host(\"a.example\") || Host('b.example')", [("a.example", "prefix", "/"), ("b.example", "prefix", "/")]),
    ],
)
def test_a_rule_is_every_way_in_which_it_holds(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert [shown(each) for each in alternatives(text)] == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("!Host(`a.example`)", "has no place"),
        ("Host(`a.example`) && Host(`b.example`)", "two hosts"),
        ("Path(`/a`) && PathPrefix(`/b`)", "one path"),
        ("Host(a.example)", "no rule from .example"),
        ("Host(a)", "texts in quotes"),
        ("(Host(`a.example`)", "not closed"),
        ("Host(`a.example`) Path(`/x`)", "no rule from Path"),
        ("Geo(`DE`)", "cannot ask Geo"),
        ("Header(`X`)", "does not take 1"),
        ("Path(`/{id:[0-9]+}`)", "."),
        ("", "Nothing is no matcher"),
        ("ClientIP(`everybody`)", "everybody"),
        (" && ".join(["(Path(`/a`) || Path(`/b`))"] * 7), "64 ways"),
    ],
)
def test_a_rule_that_no_route_can_have_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(GrammarError) as refused:
        alternatives(text)
    assert why in refused.value.message


def test_conditions_stand_beside_host_and_path() -> None:
    text = "Host(`a.example`) && Header(`X-A`, `1`) && Query(`q`, `2`) && Method(`get`) && ClientIP(`192.0.2.7/24`)"
    (match,) = alternatives(text)
    assert match.conditions == {
        "headers": [{"name": "X-A", "match": "equals", "value": "1"}],
        "query": [{"name": "q", "match": "equals", "value": "2"}],
        "methods": ["GET"],
        "client_networks": ["192.0.2.0/24"],
    }


@pytest.mark.parametrize(
    ("points", "scheme"),
    [(("web",), "http"), (("websecure",), "https"), (("web", "websecure"), None)],
)
def test_entry_points_are_schemes(points: tuple[str, ...], scheme: str | None) -> None:
    assert only(routed("Host(`a.example`)", points=points)).get("scheme") == scheme


def test_a_redirect_to_https_is_of_http_alone() -> None:
    to_https = {"redirectScheme": {"scheme": "https", "permanent": True}}
    redirect = {"redirect": {"code": 301, "scheme": "https"}}
    assert only(routed("Host(`a.example`)", to_https, points=("web",)))["action"] == redirect
    both = specs(routed("Host(`a.example`)", to_https, points=("web", "websecure")), "Route").values()
    assert {each["scheme"]: "redirect" in each["action"] for each in both} == {"http": True, "https": False}
    assert "pools" in only(routed("Host(`a.example`)", to_https))["action"]


@pytest.mark.parametrize(
    ("path", "steps", "expected"),
    [
        ("PathPrefix(`/api`)", [{"stripPrefix": {"prefixes": ["/api"]}}], {"prefix_rewrite": "/"}),
        ("PathPrefix(`/api/v1`)", [{"stripPrefix": {"prefixes": ["/api"]}}], {"prefix_rewrite": "/v1"}),
        ("PathPrefix(`/a`)", [{"addPrefix": {"prefix": "/in"}}], {"prefix_rewrite": "/in/a"}),
        ("Path(`/api/x`)", [{"stripPrefix": {"prefixes": ["/api"]}}], {"rules": {"rewrite": {"path": "/x"}}}),
        ("PathPrefix(`/a`)", [{"replacePath": {"path": "/whole"}}], {"rules": {"rewrite": {"path": "/whole"}}}),
    ],
)
def test_middlewares_change_the_path_that_servers_get(
    path: str, steps: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    spec = only(routed(f"Host(`a.example`) && {path}", *steps))
    assert {name: spec.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "middleware",
    [
        {"forwardAuth": {"address": "http://auth/"}},
        {"digestAuth": {"secret": "x"}},
        {"replacePathRegex": {"regex": "^/a", "replacement": "/b"}},
        {"plugin": {"anything": {}}},
        {"stripPrefix": {"prefixes": ["/other"]}},
        {"chain": {"middlewares": [{"name": "nobody"}]}},
        {"ipAllowList": {"sourceRange": ["everybody"]}},
    ],
)
def test_what_is_not_read_keeps_its_routes_closed(middleware: dict[str, Any]) -> None:
    found = routed("Host(`a.example`) && PathPrefix(`/a`)", middleware)
    assert only(found)["action"]["fixed_response"]["status"] == 503
    assert [each for each in found.report if each.verdict is Verdict.NOT_POSSIBLE]


def test_a_middleware_that_is_not_in_the_file_is_asked_for_and_nobody_is_served_until_then() -> None:
    found = routed("Host(`a.example`)")
    route = next(each for each in found.documents if each["kind"] == "Route")
    assert "pools" in route["spec"]["action"]
    rule = {"match": "Host(`a.example`)", "kind": "Rule", "services": SERVICE, "middlewares": [{"name": "authelia"}]}
    body = {"apiVersion": "traefik.io/v1alpha1", "kind": "IngressRoute", "metadata": {"name": "r"}}
    closed = read({**body, "spec": {"entryPoints": ["web"], "routes": [rule]}})
    assert only(closed)["action"]["fixed_response"]["status"] == 503
    assert any("Middleware default/authelia" in each for each in closed.needs)
    assert verdict_at(closed, "middlewares[0].name")[0] is Verdict.DIFFERENT


def test_limits_networks_and_headers_are_rules() -> None:
    rules = only(
        routed(
            "Host(`a.example`)",
            {"rateLimit": {"average": 10, "burst": 30}},
            {"inFlightReq": {"amount": 5}},
            {"headers": {"frameDeny": True, "customRequestHeaders": {"X-A": "1", "X-B": ""}, "stsSeconds": 60}},
            {"ipWhiteList": {"sourceRange": ["192.0.2.0/24"]}},
        )
    )["rules"]
    assert rules["client_limit"] == {"requests": 10, "per": "second", "burst": 30, "in_flight": 5}
    assert rules["request_headers"] == {"set": {"X-A": "1"}, "remove": ["X-B"]}
    assert rules["response_headers"] == {"set": {"X-Frame-Options": "DENY"}}
    assert rules["security_headers"] == {"hsts_seconds": 60, "hsts_subdomains": False}
    assert list(rules["access"]) == ["allow"]


def test_objects_of_another_group_are_not_read() -> None:
    spec = {"routes": [{"match": "Host(`a.example`)", "kind": "Rule", "services": SERVICE}]}
    found = read({"apiVersion": "other.io/v1", "kind": "IngressRoute", "metadata": {"name": "r"}, "spec": spec})
    assert not found.documents
    assert {each.verdict for each in found.report if "spec" in each.text} == {Verdict.NOT_POSSIBLE}


def with_middleware(spec: dict[str, Any] | None) -> Import:
    """An Ingress of Traefik that names the Middleware default/m0."""
    found = ingress()
    found["spec"]["ingressClassName"] = "traefik"
    found["metadata"]["annotations"] = {
        "traefik.ingress.kubernetes.io/router.middlewares": "default-m0@kubernetescrd",
        "traefik.ingress.kubernetes.io/router.entrypoints": "web",
    }
    made = {"apiVersion": "traefik.io/v1alpha1", "kind": "Middleware", "metadata": {"name": "m0"}, "spec": spec}
    return read(found, *([made] if spec else []))


def test_ingresses_name_middlewares_as_well() -> None:
    limited = only(with_middleware({"inFlightReq": {"amount": 5}}))
    assert (limited["rules"], "pools" in limited["action"]) == ({"client_limit": {"in_flight": 5}}, True)
    to_https = only(with_middleware({"redirectScheme": {"scheme": "https"}}))
    assert to_https["action"] == {"redirect": {"code": 302, "scheme": "https"}}
    for closed in (None, {"forwardAuth": {"address": "http://auth/"}}, {"stripPrefix": {"prefixes": ["/a"]}}):
        assert only(with_middleware(closed))["action"]["fixed_response"]["status"] == 503
