"""A load balancer at Google becomes definitions of ours: what we rendered ourselves comes back as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, replace
from typing import Any

import pytest
from hypothesis import given, settings

from apps.adoption.contract import Adoption, Verdict, Wish
from apps.adoption.google import adopt
from apps.compiler.model.shared import Listener, LoadBalancer, PathKind, Protocol, Route, WeightedPool
from apps.compiler.questions.trace import Question, trace
from apps.compiler.targets.terraform.google.render import render
from apps.definitions.reading.documents import Object, read_object
from apps.definitions.shapes.traffic.load_balancer import LoadBalancerSpec
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.definitions.shapes.traffic.route import RouteSpec
from apps.drivers.clouds.contract import CloudAccess, FoundLoadBalancer
from apps.drivers.clouds.google import GoogleReader
from tests.conformance.fake_google import Env, served
from tests.pure.google_fixtures import cloud_pool, everything, google_fronts, stack
from tests.pure.test_terraform_google_routing import questions

WISH = Wish(
    "shop",
    "acme",
    regions={"europe-west3-a": "europe", "us-east4-b": "america"},
    certificates={"theirs": "shop-tls"},
    addresses={"203.0.113.1": "shop-ip"},
)


@pytest.fixture(scope="module")
def ours() -> Iterator[GoogleReader]:
    env = Env()
    env.apply(render(everything()))
    for resource in env.resources["targetHttpsProxies"].values():
        resource["sslCertificates"] = ["projects/acme-prod/global/sslCertificates/theirs"]
    with served(env) as url:
        yield GoogleReader(CloudAccess("google", "global", "acme-prod", url))


def _objects(adoption: Adoption) -> list[Object]:
    """Every document, read as the API reads it."""
    return [read_object(document) for document in adoption.documents]


def _specs(adoption: Adoption, kind: type) -> dict[str, Any]:
    return {found.name: found.spec for found in _objects(adoption) if isinstance(found.spec, kind)}


def _front(adoption: Adoption) -> LoadBalancer:
    """The adopted load balancer as the compiler reads it; pools by the names that we gave them at Google."""
    front = next(iter(_specs(adoption, LoadBalancerSpec).values()))
    listeners = tuple(
        Listener(f"lst-{number}", each.name, each.protocol, each.port, default_pool_id=_pool_id(each.default_pool))
        for number, each in enumerate(front.listeners, 1)
    )
    routes = tuple(
        _route(number, name, spec) for number, (name, spec) in enumerate(_specs(adoption, RouteSpec).items(), 1)
    )
    return LoadBalancer("lb-1", "shop", "acme", listeners, routes)


def _pool_id(name: str | None) -> str | None:
    return name.removeprefix("acme/").removeprefix("sw-stk3-") if name else None


def _route(number: int, name: str, spec: RouteSpec) -> Route:
    pools = tuple(WeightedPool(_pool_id(share.pool) or "", share.weight) for share in spec.action.pools)
    return Route(
        f"route-{number}", name, "acme", spec.hostname, spec.path, spec.path_kind, spec.methods, spec.headers, pools,
        spec.action.redirect, spec.action.fixed_response, spec.prefix_rewrite, mirror_pool_id=_pool_id(spec.mirror),
    )  # fmt: skip


def _identity(route: Route) -> tuple[object, ...]:
    """What a route says, without its number, its label, and the weight of a pool that is alone."""
    shares = [share for share in route.pools if share.weight]
    weights = tuple((share.pool_id, share.weight if len(shares) > 1 else 1) for share in shares)
    headers = frozenset((each.name.lower(), each.match, each.value) for each in route.headers)
    return (
        route.hostname, route.path, route.path_kind, frozenset(route.methods), headers, weights,
        *(each and astuple(each) for each in (route.redirect, route.fixed_response)), route.prefix_rewrite,
        route.mirror_pool_id,
    )  # fmt: skip


# --- there and back


def test_what_we_rendered_is_adopted_as_it_was(ours: GoogleReader) -> None:
    adopted = _front(adopt(ours.describe("urlMaps/sw-stk3-lst-2"), WISH))
    original = everything().load_balancers[0]
    assert set(map(_identity, adopted.routes)) == set(map(_identity, original.routes))
    assert [(each.protocol, each.port) for each in adopted.listeners] == [(Protocol.HTTPS, 443)]


def test_pools_come_back_with_servers_limits_and_checks(ours: GoogleReader) -> None:
    pools: Mapping[str, PoolSpec] = _specs(adopt(ours.describe("urlMaps/sw-stk3-lst-2"), WISH), PoolSpec)
    original = everything().pools[0]
    found = pools["sw-stk3-pool-1"]
    assert (found.protocol, found.balance, found.server_timeout_ms) == (
        original.protocol, original.balance, original.server_timeout_ms,
    )  # fmt: skip
    assert found.health_check
    assert original.health_check
    assert asdict(found.health_check) == asdict(original.health_check)
    assert [(each.region, each.limit.plain, each.capacity_scaler) for each in found.backends] == [
        (each.region, each.limit, each.capacity_scaler) for each in original.backends
    ]
    assert [[(each.address, each.port) for each in backend.servers] for backend in found.backends] == [
        [("192.0.2.10", 8001)],
        [("198.51.100.11", 8011)],
    ]
    assert pools["sw-stk3-pool-2"].balance == everything().pools[1].balance


def test_a_deerror_pool_and_a_static_ip_come_back(ours: GoogleReader) -> None:
    with_pool = adopt(ours.describe("urlMaps/sw-stk3-lst-3"), WISH)
    assert next(iter(_specs(with_pool, LoadBalancerSpec).values())).listeners[0].default_pool == "acme/sw-stk3-pool-1"
    with_address = adopt(ours.describe("urlMaps/sw-stk3-lst-2"), WISH)
    assert next(iter(_specs(with_address, LoadBalancerSpec).values())).listeners[0].static_ip == "shop-ip"


def test_a_proxy_of_tcp_comes_back(ours: GoogleReader) -> None:
    adoption = adopt(ours.describe("targetTcpProxies/sw-stk3-lst-9"), WISH)
    listener = next(iter(_specs(adoption, LoadBalancerSpec).values())).listeners[0]
    assert (listener.protocol, listener.port, listener.default_pool) == (Protocol.TCP, 5432, "acme/sw-stk3-pool-3")
    pool = _specs(adoption, PoolSpec)["sw-stk3-pool-3"]
    assert [each.limit.plain for each in pool.backends] == [each.limit for each in everything().pools[2].backends]


def _described(front: LoadBalancer, number: int) -> FoundLoadBalancer:
    """What the reader would describe, without the server between: the fake's own resources."""
    env = Env()
    pools = tuple(cloud_pool(number) for number in (*range(1, len(front.routes) + 1), 99, 100))
    env.apply(render(stack(front, pools=pools, certificates=everything().certificates)))
    name = f"sw-stk3-lst-{number}"
    url_map = env.resources["urlMaps"][f"global/{name}"]
    services = {each["name"]: each for each in env.resources["backendServices"].values()}
    protocol = "http" if number == 1 else "https"
    proxy = {"name": name, "protocol": protocol, "sslCertificates": ["x/theirs"]}
    rule = {"name": name, "target": f"x/{name}", "portRange": "80-80" if number == 1 else "443-443", "IPAddress": ""}
    described = {"urlMap": url_map, "proxies": [proxy], "forwardingRules": [rule], "backendServices": services}
    return FoundLoadBalancer("URL map", name, f"urlMaps/{name}", described)


@pytest.mark.slow(reason="25 generated load balancers are rendered, read back and asked every question")
@settings(deadline=None, max_examples=25)
@given(google_fronts())
def test_every_url_map_of_ours_comes_back_and_does_the_same(front: LoadBalancer) -> None:
    """Routes that nothing could ever reach do not come back; every request has the answer that it had."""
    for listener in front.listeners:
        adopted = _front(adopt(_described(front, int(listener.id[-1])), WISH))
        for question in questions(front):
            if question.scheme is listener.protocol:
                assert _outcome(adopted, question) == _outcome(front, question), question


def _outcome(front: LoadBalancer, question: Question) -> object:
    found = trace(front, question)
    return (found.pools, found.path, found.status, found.location, found.mirror_pool_id)


# --- what others wrote


def _foreign(**url_map: Any) -> FoundLoadBalancer:
    service = {"name": "web", "protocol": "HTTP", "timeoutSec": 30}
    rule = {"name": "front", "target": "x/proxy", "portRange": "80", "IPAddress": "203.0.113.9"}
    described = {
        "urlMap": {"name": "theirs", "defaultService": "p/backendServices/web", **url_map},
        "proxies": [{"name": "proxy", "protocol": "http"}],
        "forwardingRules": [rule],
        "backendServices": {"web": service, "api": {**service, "name": "api"}},
    }
    return FoundLoadBalancer("URL map", "theirs", "urlMaps/theirs", described)


def _matcher(*hosts: str, **matcher: Any) -> dict[str, Any]:
    return {
        "hostRules": [{"hosts": list(hosts), "pathMatcher": "m"}],
        "pathMatchers": [{"name": "m", "defaultService": "p/backendServices/web", **matcher}],
    }


def _lines(adoption: Adoption, verdict: Verdict) -> str:
    return "\n".join(f"{line.found}: {line.reason}" for line in adoption.report if line.verdict is verdict)


API = "p/backendServices/api"


def test_path_rules_are_routes_longest_first() -> None:
    rules = [
        {"paths": ["/api", "/api/*"], "service": API},
        {"paths": ["/api/v2/*"], "service": "p/backendServices/web"},
    ]
    adoption = adopt(_foreign(**_matcher("a.example.com", pathRules=rules)), WISH)
    found = {(each.path, each.path_kind) for each in _front(adoption).routes}
    assert found == {("/api", PathKind.PREFIX), ("/api/v2", PathKind.PREFIX)}
    assert "also matches /api/v2 itself" in _lines(adoption, Verdict.LOSSY)


def test_a_prefix_of_characters_is_a_loss() -> None:
    rules = [{"priority": 1, "matchRules": [{"prefixMatch": "/api"}], "service": API}]
    adoption = adopt(_foreign(**_matcher("a.example.com", routeRules=rules)), WISH)
    assert "but not /apix" in _lines(adoption, Verdict.LOSSY)


@pytest.mark.parametrize(
    ("match", "word"),
    [
        ({"regexMatch": "/a.*"}, "regular expression"),
        ({"prefixMatch": "/", "queryParameterMatches": [{"name": "q", "presentMatch": True}]}, "query"),
        ({"prefixMatch": "/", "headerMatches": [{"headerName": "x", "prefixMatch": "a"}]}, "header x"),
        (
            {"prefixMatch": "/", "headerMatches": [{"headerName": "x", "exactMatch": "a", "invertMatch": True}]},
            "header x",
        ),
        ({"prefixMatch": "/A b"}, "is not supported"),
        ({"pathTemplateMatch": "/{a=*}"}, "template"),
    ],
)
def test_a_condition_that_we_cannot_say_takes_its_route_along(match: dict[str, Any], word: str) -> None:
    """A route without the condition would take more than the rule did."""
    rules = [
        {"priority": 1, "matchRules": [match], "service": API},
        {"priority": 2, "matchRules": [{"prefixMatch": "/kept/"}, {"fullPathMatch": "/kept"}], "service": API},
    ]
    adoption = adopt(_foreign(**_matcher("a.example.com", routeRules=rules)), WISH)
    assert [each.path for each in _front(adoption).routes] == ["/kept"]
    assert word in _lines(adoption, Verdict.LEFT_OUT)


@pytest.mark.parametrize(
    ("action", "word"),
    [
        ({"urlRedirect": {"prefixRedirect": "/new"}}, "prefix"),
        ({"service": API, "routeAction": {"urlRewrite": {"hostRewrite": "b.example"}}}, "host"),
        ({"service": "p/backendBuckets/files"}, "bucket"),
        (
            {"service": API, "routeAction": {"faultInjectionPolicy": {"abort": {"httpStatus": 503, "percentage": 5}}}},
            "injects faults",
        ),
    ],
)
def test_an_action_that_we_cannot_do_leaves_its_route_out(action: dict[str, Any], word: str) -> None:
    rules = [{"priority": 1, "matchRules": [{"prefixMatch": "/"}], **action}]
    adoption = adopt(_foreign(**_matcher("a.example.com", routeRules=rules)), WISH)
    assert _front(adoption).routes == ()
    assert word in _lines(adoption, Verdict.LEFT_OUT)


def test_hosts_that_are_no_names_are_left_out_and_said() -> None:
    adoption = adopt(_foreign(**_matcher("*", "*-x.example.com", "a.example.com:8080")), WISH)
    assert _front(adoption).routes == ()
    assert _lines(adoption, Verdict.LEFT_OUT).count("could not be imported") == 3


def test_a_host_that_stops_where_its_wildcard_would_go_on_has_a_route_for_the_rest() -> None:
    """At Google an exact host never falls through to the wildcard; ours does, unless something takes it all."""
    hosts = [{"hosts": ["b.a.example.com"], "pathMatcher": "b"}, {"hosts": ["*.a.example.com"], "pathMatcher": "w"}]
    rules = [{"priority": 1, "matchRules": [{"prefixMatch": "/"}], "service": API}]
    matchers = [
        {"name": "b", "defaultService": "p/backendServices/web"},
        {"name": "w", "defaultService": "p/backendServices/web", "routeRules": rules},
    ]
    adopted = _front(adopt(_foreign(hostRules=hosts, pathMatchers=matchers), WISH))
    answers = {
        host: trace(adopted, Question(host, scheme=Protocol.HTTP)).pools
        for host in ("b.a.example.com", "x.a.example.com")
    }
    assert [shares[0].pool_id for shares in answers.values()] == ["web", "api"]


def test_another_order_than_ours_is_told_and_what_was_never_reached_is_left_out() -> None:
    canary = [{"headerName": "X-Canary", "exactMatch": "yes"}]
    rules = [
        {"priority": 1, "matchRules": [{"prefixMatch": "/", "headerMatches": canary}], "service": API},
        {"priority": 2, "matchRules": [{"fullPathMatch": "/a"}], "service": "p/backendServices/web"},
        {"priority": 3, "matchRules": [{"fullPathMatch": "/a"}], "service": API},
    ]
    adoption = adopt(_foreign(**_matcher("a.example.com", routeRules=rules)), WISH)
    assert "comes before the rule for /" in _lines(adoption, Verdict.LOSSY)
    assert "never matched" in _lines(adoption, Verdict.LEFT_OUT)
    assert len(_front(adoption).routes) == 2


def test_a_map_that_redirects_every_host_is_said_to_need_names() -> None:
    found = _foreign(defaultService=None, defaultUrlRedirect={"httpsRedirect": True})
    adoption = adopt(found, WISH)
    assert _front(adoption).listeners[0].default_pool_id is None
    assert "routes need a hostname" in _lines(adoption, Verdict.LEFT_OUT)


def test_what_a_map_does_besides_is_said() -> None:
    besides = {
        "headerAction": {"requestHeadersToRemove": ["x"]},
        "defaultCustomErrorResponsePolicy": {"errorService": "p/backendBuckets/pages"},
        "defaultRouteAction": {"retryPolicy": {"numRetries": 3}},
    }
    lines = _lines(adopt(_foreign(**besides), WISH), Verdict.LOSSY)
    assert [word in lines for word in ("Headers are not", "errors of servers", "retried only")] == [True] * 3


@pytest.mark.parametrize(
    ("mirror", "adopted"),
    [
        ({"backendService": "p/backendServices/web"}, "web"),
        ({"backendService": "p/backendServices/web", "mirrorPercent": 100.0}, "web"),
        ({"backendService": "p/backendServices/web", "mirrorPercent": 5.0}, None),
        ({"backendService": API}, None),
        ({"backendService": "p/backendServices/gone"}, None),
    ],
)
def test_a_mirror_of_all_requests_is_adopted_and_any_other_is_a_loss(
    mirror: dict[str, Any], adopted: str | None
) -> None:
    action = {"service": API, "routeAction": {"requestMirrorPolicy": mirror}}
    rules = [{"priority": 1, "matchRules": [{"prefixMatch": "/"}], **action}]
    adoption = adopt(_foreign(**_matcher("a.example.com", routeRules=rules)), WISH)
    (found,) = _front(adoption).routes
    assert found.mirror_pool_id == adopted
    assert ("Requests are not mirrored." in _lines(adoption, Verdict.LOSSY)) is (adopted is None)


def test_a_deerror_that_rewrites_paths_is_left_out() -> None:
    rewriting = {"urlRewrite": {"pathPrefixRewrite": "/v2/"}}
    adoption = adopt(_foreign(**_matcher("a.example.com", defaultRouteAction=rewriting)), WISH)
    assert _front(adoption).routes == ()
    assert "rewrites paths" in _lines(adoption, Verdict.LEFT_OUT)


def test_an_https_listener_without_a_certificate_of_ours_is_left_out_by_name() -> None:
    found = _foreign()
    found.described["proxies"][0] |= {"protocol": "https", "sslCertificates": ["x/unknown"]}
    adoption = adopt(found, WISH)
    assert _front(adoption).listeners == ()
    assert "unknown" in _lines(adoption, Verdict.LEFT_OUT)


@pytest.mark.parametrize(
    ("service", "word"),
    [
        ({"protocol": "HTTPS"}, "without TLS"),
        ({"backends": [{"group": "p/zones/z/instanceGroups/ig"}]}, "listed by address"),
        ({"backends": [{"group": "p/zones/z9/networkEndpointGroups/neg"}]}, "zone z9"),
    ],
)
def test_services_that_are_no_pools_are_said(service: dict[str, Any], word: str) -> None:
    found = _foreign()
    found.described["backendServices"]["web"] |= service
    found.described["groups"] = {"z9/neg": {"networkEndpointType": "GCE_VM_IP_PORT", "zone": "p/zones/z9"}}
    assert word in _lines(adopt(found, WISH), Verdict.LEFT_OUT)


@pytest.mark.parametrize(
    "extra", [{"enableCDN": True}, {"securityPolicy": "p/armor"}, {"sessionAffinity": "HTTP_COOKIE"}]
)
def test_what_a_service_did_besides_is_said(extra: dict[str, Any]) -> None:
    found = _foreign()
    found.described["backendServices"]["web"] |= extra
    assert "backend service web" in _lines(adopt(found, WISH), Verdict.LOSSY)


def test_groups_of_one_region_are_one_backend_with_the_sum_of_their_limits() -> None:
    found = _foreign()
    group = {"networkEndpointType": "NON_GCP_PRIVATE_IP_PORT"}
    zones = ("europe-west3-a", "europe-west3-b")
    found.described["groups"] = {
        f"{zone}/neg": {**group, "zone": f"p/zones/{zone}", "endpoints": [{"ipAddress": f"192.0.2.{n}", "port": 80}]}
        for n, zone in enumerate(zones)
    }
    backends = [{"group": f"p/zones/{zone}/networkEndpointGroups/neg", "maxRate": 100} for zone in zones]
    found.described["backendServices"]["web"]["backends"] = backends
    wish = replace(WISH, regions=dict.fromkeys(zones, "europe"))
    backend = _specs(adopt(found, wish), PoolSpec)["web"].backends[0]
    assert (backend.limit.value, len(backend.servers)) == (200, 2)


def test_every_line_of_a_report_that_is_not_plain_has_a_reason(ours: GoogleReader) -> None:
    report = adopt(ours.describe("urlMaps/sw-stk3-lst-1"), WISH).report
    assert all(line.reason.endswith(".") for line in report if line.verdict is not Verdict.MAPPED)
    assert {line.kind for line in report if line.verdict is Verdict.MAPPED} == {"Pool", "LoadBalancer", "Route"}


def test_names_are_given_once() -> None:
    rules = [
        {"priority": number, "matchRules": [{"fullPathMatch": path}], "service": API}
        for number, path in enumerate(("/a.b", "/a-b", "/a/b"))
    ]
    names = list(_specs(adopt(_foreign(**_matcher("a.example.com", routeRules=rules)), WISH), RouteSpec))
    assert len(set(names)) == len(names) == 3
