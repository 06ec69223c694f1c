"""Whichever rule of an ALB got a request, the route that came of it gets it, or the report says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.adoption import alb
from apps.adoption.contract import Adoption, Verdict, Wish
from apps.compiler.model.shared import LoadBalancer, PathKind, Route
from apps.compiler.routing import winning_route
from apps.drivers.clouds.contract import FoundLoadBalancer

WISH = Wish(name="front", account="acme")
ANY, WWW, API = "*.l.example", "www.l.example", "api.l.example"
HOSTS = ((), (ANY,), (WWW,), (API,), (ANY, WWW))
PATHS = ((), ("/a",), ("/a", "/a/*"), ("/a/b", "/a/b/*"))
METHODS = ((), ("GET",), ("GET", "POST"))
# The hosts that rules name and one that only the wildcard takes, with paths on and beside every border.
REQUESTS = tuple(product((WWW, API, "other.l.example"), ("/", "/a", "/a/b", "/a/b/c", "/c"), ("GET", "PUT")))
Said = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def rule(number: int, hosts: tuple[str, ...], paths: tuple[str, ...], methods: tuple[str, ...]) -> dict[str, Any]:
    """One that answers with its own number."""
    conditions = [
        {"Field": field, config: {"Values": list(values)}}
        for field, config, values in (
            ("host-header", "HostHeaderConfig", hosts),
            ("path-pattern", "PathPatternConfig", paths),
            ("http-request-method", "HttpRequestMethodConfig", methods),
        )
        if values
    ]
    answer = {"StatusCode": str(400 + number), "ContentType": "text/plain"}
    action = {"Type": "fixed-response", "FixedResponseConfig": answer}
    return {"Priority": str(number), "Conditions": conditions, "Actions": [action]}


def adopted(*rules: Said) -> Adoption:
    listener = {
        "Port": 80,
        "Protocol": "HTTP",
        "DefaultActions": [rule(4, (), (), ())["Actions"][0]],
        "Rules": [rule(number, *said) for number, said in enumerate(rules, 10)],
    }
    return alb.adopt(FoundLoadBalancer("Application Load Balancer", "old", "arn", {"listeners": [listener]}), WISH)


def asked_of_the_alb(rules: tuple[Said, ...], host: str, path: str, method: str) -> int | None:
    """The first rule by priority whose conditions all hold, as AWS's guide has it."""
    for number, (hosts, paths, methods) in enumerate(rules, 10):
        takes = (
            not each or any(fnmatchcase(value, one) for one in each) for each, value in ((hosts, host), (paths, path))
        )
        if all(takes) and (not methods or method in methods):
            return 400 + number
    return None


def asked_here(adoption: Adoption, host: str, path: str, method: str) -> int | None:
    specs = [each["spec"] for each in adoption.documents if each["kind"] == "Route"]
    front = LoadBalancer("lb-1", "front", "acme", (), tuple(map(_route, range(len(specs)), specs)))
    found = winning_route(front, host, path, method, {})
    return int(found.label) if found else None


def _route(number: int, spec: Mapping[str, Any]) -> Route:
    status = str(spec["action"]["fixed_response"]["status"])
    kind = PathKind(spec["path_kind"])
    return Route(f"route-{number + 1}", status, "acme", spec["hostname"], spec["path"], kind, tuple(spec["methods"]))


def turned_round(adoption: Adoption) -> bool:
    return any("came after it" in line.reason for line in adoption.report)


@given(st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from(PATHS), st.sampled_from(METHODS)), max_size=5))
def test_every_request_goes_where_it_went_unless_the_report_says_otherwise(rules: list[Said]) -> None:
    said = tuple(rules)
    adoption = adopted(*said)
    named = {host for hosts, _, _ in said for host in hosts}
    if turned_round(adoption):
        return
    for host, path, method in REQUESTS:
        if host not in named and not (host.endswith(".l.example") and ANY in named):
            continue  # no rule names it, which is said of rules for every host
        expected = asked_of_the_alb(said, host, path, method)
        assert asked_here(adoption, host, path, method) == expected, (host, path, method, adoption.report)


def test_what_a_wildcard_before_it_takes_is_no_route_of_the_host() -> None:
    adoption = adopted(((ANY,), (), ()), ((), ("/a",), ()), ((WWW,), ("/c",), ()))
    assert asked_here(adoption, WWW, "/a", "GET") == 410
    lost = [line.found for line in adoption.report if "never matched" in line.reason]
    assert [each.rpartition(", ")[2] for each in lost] == [f"{WWW}/a", f"{ANY}/a", f"{WWW}/c"]


def test_what_comes_before_a_rule_of_a_wildcard_comes_before_it_on_the_host_as_well() -> None:
    adoption = adopted(((ANY,), ("/a/b",), ()), ((ANY,), (), ()), ((WWW,), ("/a",), ()))
    assert [asked_here(adoption, WWW, path, "GET") for path in ("/a/b", "/a", "/c")] == [410, 411, 411]


def test_without_a_look_at_wildcards_a_rule_that_was_never_reached_would_take_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control."""
    monkeypatch.setattr(alb, "covers", lambda _wildcard, _host: False)
    adoption = adopted(((ANY,), (), ()), ((WWW,), ("/a",), ()))
    assert asked_here(adoption, WWW, "/a", "GET") == 411
    assert not [line for line in adoption.report if line.verdict is Verdict.LEFT_OUT and "never" in line.reason]
