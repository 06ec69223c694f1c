"""Requests of access logs, in the formats that servers write."""

from __future__ import annotations

import json

import pytest

from apps.importing.replay.access_logs import MOST, Logged, logged
from apps.importing.replay.asking import requests

COMBINED = '192.0.2.7 - anna [30/Nov/2026:10:00:00 +0000] "GET /a?b=c HTTP/1.1" 200 12 "http://ref.example/x" "curl/8"'
HAPROXY = (
    "Nov 30 10:00:00 lb haproxy[7]: 192.0.2.7:4711 [30/Nov/2026:10:00:00.000] www~ shop/web1 0/0/1/2/3 200 120 - - "
    '---- 1/1/0/0/0 0/0 {shop.example.com|curl} "POST /cart HTTP/1.1"'
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (COMBINED, Logged("GET", "", "/a?b=c")),
        (f"shop.example.com:443 {COMBINED}", Logged("GET", "shop.example.com", "/a?b=c")),
        (HAPROXY, Logged("POST", "shop.example.com", "/cart")),
        (HAPROXY.replace("/cart", "https://b.example.com/x?y").replace("{shop.example.com|curl} ", ""),
         Logged("POST", "b.example.com", "/x?y")),
        (json.dumps({"request": {"method": "GET", "host": "A.example.com:443", "uri": "/z"}, "status": 200}),
         Logged("GET", "a.example.com", "/z")),
        (json.dumps({"method": "PUT", "host": "a.example.com", "path": "/z"}), Logged("PUT", "a.example.com", "/z")),
    ],
)  # fmt: skip
def test_a_line_of_each_format_is_its_request(line: str, expected: Logged) -> None:
    assert logged([line]) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "{}",
        "[1]",
        '"CONNECT a:443 HTTP/1.1"',
        '"GET relative HTTP/1.1"',
        '"\\x16\\x03" 400',
        "haproxy started",
    ],
)
def test_what_is_no_request_is_passed_over(line: str) -> None:
    assert logged([line, COMBINED]) == logged([COMBINED])


def test_of_requests_that_are_alike_one_is_asked_and_of_others_no_more_than_show_something() -> None:
    assert len(logged([COMBINED] * 9)) == 1
    assert len(logged(COMBINED.replace("/a", f"/{number}") for number in range(MOST + 9))) == MOST


def test_a_request_without_a_host_is_asked_of_each_that_is_known() -> None:
    routes = [{"load_balancer": "front", "hostname": host, "path": "/"} for host in ("a.example", "b.example")]
    log = [Logged("GET", "", "/of-log"), Logged("GET", "c.example", "/of-log")]
    asked = [each.host for each in requests([], {80: "front"}, routes, log) if each.path == "/of-log"]
    assert asked == ["somebody.example.invalid", "a.example", "b.example", "c.example"]
