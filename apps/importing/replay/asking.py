"""Requests that show the borders of a configuration: its hosts, paths, methods and conditions, and their neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any

from apps.compiler.matching import patterns
from apps.compiler.matching.hosts import example_of
from apps.importing.replay.access_logs import MOST as MOST_LOGGED
from apps.importing.replay.access_logs import Logged, hosts_of
from apps.importing.replay.contract import Request

MOST = 600
MOST_HOSTS, MOST_PATHS, MOST_CONDITIONS = 8, 48, 8
_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}")
_END = re.compile(r"\.[a-z0-9]{2,5}")


def requests(
    words: list[str], ports: Mapping[int, str], routes: list[dict[str, Any]], log: Sequence[Logged] = ()
) -> Iterator[Request]:
    """At most MOST for each port; `ports` lead to the load balancer, `routes` are the specifications of ours.

    `words` are those of the old configuration that may be hosts or paths. Of an access log as many come on top as it
    has, each at every port.
    """
    for port, load_balancer in ports.items():
        own = [spec for spec in routes if spec["load_balancer"] == load_balancer]
        hosts = _hosts(words, own)
        yield from islice(_of_port(port, hosts, _paths(words, own), own), MOST)
        of_log = (Request(port, host, each.path, each.method) for each in log for host in hosts_of(each, hosts))
        yield from islice(of_log, MOST_LOGGED)


def _of_port(port: int, hosts: list[str], paths: list[str], routes: list[dict[str, Any]]) -> Iterator[Request]:
    conditions = list({repr(each): each for spec in routes for each in _conditions(spec)}.values())[:MOST_CONDITIONS]
    for host in hosts:
        for path in paths:
            yield Request(port, host, path)
    for host in hosts[:3]:
        for path in paths[:12]:
            yield Request(port, host, path, "POST")
            yield Request(port, host, f"{path}?q=1")
            for method, headers, query in _together(conditions):
                yield Request(port, host, path + query, method, headers)


def _together(conditions: list[tuple[str, str, str]]) -> Iterator[tuple[str, dict[str, str], str]]:
    """Each condition alone, and each pair."""
    for chosen in [*((each,) for each in conditions), *combinations(conditions, 2)]:
        method, headers, query, cookies = "GET", {}, [], []
        for kind, name, value in chosen:
            if kind == "method":
                method = value
            elif kind == "header":
                headers[name] = value
            elif kind == "query":
                query.append(f"{name}={value}")
            else:
                cookies.append(f"{name}={value}")
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        yield method, headers, "?" + "&".join(query) if query else ""


def _conditions(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for method in spec.get("methods", ())[:1]:
        yield "method", "", method
    if spec.get("scheme"):  # a proxy in front may say it
        yield "header", "X-Forwarded-Proto", spec["scheme"]
    for kind, field in (("header", "headers"), ("query", "query"), ("cookie", "cookies")):
        for each in spec.get(field, ()):
            match = each.get("match", "equals")
            value = each.get("value", "1")
            example = patterns.example_of(value) if match == "regex" else value
            if each["name"] == "Sec-WebSocket-Key":
                continue
            yield kind, each["name"], example


def _hosts(words: list[str], routes: list[dict[str, Any]]) -> list[str]:
    named = [example_of(spec["hostname"]) for spec in routes if spec["hostname"] != "*"]
    found = dict.fromkeys(
        ["somebody.example.invalid", *named, *(w.lower() for w in words if _HOST.fullmatch(w.lower()))]
    )
    return list(found)[:MOST_HOSTS]


def _paths(words: list[str], routes: list[dict[str, Any]]) -> list[str]:
    literals = [word for word in words if _PATH.fullmatch(word) and not word.startswith("//")]
    literals += [spec["path"] for spec in routes if spec.get("path") and spec.get("path_kind") != "regex"]
    own = {spec.get("path") for spec in routes}
    literals.sort(key=lambda text: (text not in own, len(text)))
    endings = [word for word in words if _END.fullmatch(word)][:6]
    found: dict[str, None] = {"/": None}
    for text in dict.fromkeys(literals):
        bare = text.rstrip("/") or "/zz"
        found |= dict.fromkeys([text, bare, f"{bare}/", f"{bare}/zz", f"{bare}zz"])
        found |= dict.fromkeys(f"{bare}/zz{end}" for end in endings[:2])
    found |= dict.fromkeys(f"/zz{end}" for end in endings)
    return list(found)[:MOST_PATHS]
