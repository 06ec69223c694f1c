"""A small server that answers as Google's Compute Engine and Cloud Monitoring APIs document that they do.

https://cloud.google.com/compute/docs/reference/rest/v1: lists in pages with `nextPageToken`, single resources, 404 with
`{"error": {"code", "message"}}`, `backendServices.getHealth`, `networkEndpointGroups.listNetworkEndpoints`.
https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list: a filter on the metric's type, an
interval, and an aggregation by minutes and fields. What is not asked for here is answered 404, unknown words 400: it
can say no.

An environment can be filled from a document of ours: that is what Google would hold after `terraform apply`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import ceil
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from apps.compiler.targets.terraform.document import StackDocument
from tests.serving import answering

Block = dict[str, Any]
API = "https://www.googleapis.com/compute/v1"
PAGE = 2
COLLECTIONS = {
    "google_compute_backend_service": "backendServices",
    "google_compute_global_address": "addresses",
    "google_compute_global_forwarding_rule": "forwardingRules",
    "google_compute_health_check": "healthChecks",
    "google_compute_network_endpoint_group": "networkEndpointGroups",
    "google_compute_ssl_certificate": "sslCertificates",
    "google_compute_ssl_policy": "sslPolicies",
    "google_compute_target_http_proxy": "targetHttpProxies",
    "google_compute_target_https_proxy": "targetHttpsProxies",
    "google_compute_target_tcp_proxy": "targetTcpProxies",
    "google_compute_url_map": "urlMaps",
}
# Where the API's name is not the provider's in camel case, and where it has one object instead of a list.
NAMES = {
    "backend": "backends", "host_rule": "hostRules", "ip_address": "IPAddress", "ip_protocol": "IPProtocol",
    "certificate": "certificate",
}  # fmt: skip
SINGLE = {
    "abort", "default_route_action", "default_url_redirect", "fault_injection_policy", "header_action",
    "http_health_check", "log_config", "request_mirror_policy", "route_action", "tcp_health_check", "url_redirect",
    "url_rewrite",
}  # fmt: skip
SECRET = {"private_key", "lifecycle"}
_REFERENCE = re.compile(r"\$\{([a-z_]+)\.([a-z0-9_]+)\.(id|self_link|name|address)\}")
_GLOBAL = re.compile(r"/compute/v1/projects/([^/]+)/global/([A-Za-z]+)(?:/([a-z0-9-]+))?(?:/([A-Za-z]+))?")
_ZONAL = re.compile(r"/compute/v1/projects/([^/]+)/zones/([^/]+)/([A-Za-z]+)/([a-z0-9-]+)(?:/([A-Za-z]+))?")
_SERIES = re.compile(r"/v3/projects/([^/]+)/timeSeries")
_METRIC = re.compile(r'metric\.type = "([a-z./_]+)"')


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of one metric in the minute that ends at `at`; labels of resource and metric together."""

    metric: str
    at: datetime
    labels: Mapping[str, str]
    values: tuple[float, ...]


@dataclass
class Env:
    """What the project holds; `requests` are those that came, `down` an answer that every request then gets."""

    project: str = "acme-prod"
    resources: dict[str, dict[str, Block]] = field(default_factory=lambda: defaultdict(dict))
    endpoints: dict[str, list[Block]] = field(default_factory=dict)
    unhealthy: set[tuple[str, int]] = field(default_factory=set)
    measured: list[Measured] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    down: tuple[int, bytes] | None = None

    def add(self, collection: str, body: Block, zone: str = "") -> str:
        """One resource more; its URL."""
        location = f"zones/{zone}" if zone else "global"
        url = f"{API}/projects/{self.project}/{location}/{collection}/{body['name']}"
        words = {"zone": f"{API}/projects/{self.project}/zones/{zone}"} if zone else {}
        self.resources[collection][f"{location}/{body['name']}"] = {**body, **words, "selfLink": url}
        return url

    def apply(self, document: StackDocument) -> None:
        """What Terraform would have made of the document; addresses are of the documentation's network."""
        given = {}
        for number, name in enumerate(document.resources.get("google_compute_global_address", {}), 1):
            given[name] = f"203.0.113.{number}"
        reader = _Reader(self, document, given)
        for kind, named in document.resources.items():
            for body in named.values():
                if kind == "google_compute_network_endpoints":
                    group = reader.plain(body["network_endpoint_group"])
                    self.endpoints[f"zones/{body['zone']}/{group}"] = [
                        {"ipAddress": each["ip_address"], "port": each["port"]} for each in body["network_endpoints"]
                    ]
                elif kind in COLLECTIONS:
                    zone = body["zone"] if kind == "google_compute_network_endpoint_group" else ""
                    found = {key: value for key, value in reader.block(body, kind).items() if key != "zone"}
                    self.add(COLLECTIONS[kind], found, zone)


class _Reader:
    """A document's bodies in the API's words, with every reference as the URL that it becomes."""

    def __init__(self, env: Env, document: StackDocument, addresses: Mapping[str, str]) -> None:
        self._env, self._document, self._addresses = env, document, addresses

    def block(self, body: Mapping[str, Any], kind: str = "") -> Block:
        return {_word(key, value, kind): self._value(key, value) for key, value in body.items() if key not in SECRET}

    def _value(self, key: str, value: Any) -> Any:
        if key in SINGLE:
            return self.block(value[0])
        if isinstance(value, list):
            return [self.block(each) if isinstance(each, Mapping) else self.plain(each) for each in value]
        return self.plain(value)

    def plain(self, value: Any) -> Any:
        """The value, or what its reference becomes."""
        found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return value
        kind, name, attribute = found.groups()
        if kind == "google_compute_global_address":
            return self._addresses[name]
        body = self._document.resources[kind][name]
        if attribute == "name":
            return body["name"]
        location = f"zones/{body['zone']}" if kind == "google_compute_network_endpoint_group" else "global"
        return f"{API}/projects/{self._env.project}/{location}/{COLLECTIONS[kind]}/{body['name']}"


def _word(key: str, value: Any, kind: str) -> str:
    if key == "path_matcher" and isinstance(value, list):
        return "pathMatchers"
    if key == "backend_service" and kind == "google_compute_target_tcp_proxy":
        return "service"
    first, *rest = key.split("_")
    return NAMES.get(key, first + "".join(part.capitalize() for part in rest))


class _Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def served(env: Env) -> Iterator[str]:
    """The server for a while; its URL.

    Google's libraries cost more than a second to import, and the drivers do it late: here it is no test's time.
    """
    import google.cloud.compute_v1
    import google.cloud.monitoring_v3  # noqa: F401

    class Handler(_Handler):
        of = env

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, answering(server):
        yield f"http://127.0.0.1:{server.server_port}"


class _Handler(BaseHTTPRequestHandler):
    of: Env
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(json.loads(body or b"{}"))

    def _answer(self, body: Block) -> None:
        address = urlsplit(self.path)
        self.of.requests.append(f"{self.command} {address.path}")
        if self.of.down is not None:
            self._send(*self.of.down)
            return
        try:
            found = _found(self.of, self.command, address.path, parse_qsl(address.query), body)
        except _Refusal as refusal:
            error = {"error": {"code": refusal.code, "message": str(refusal), "errors": []}}
            self._send(refusal.code, json.dumps(error).encode())
        else:
            self._send(200, json.dumps(found).encode())

    def _send(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _found(env: Env, method: str, path: str, query: list[tuple[str, str]], body: Block) -> Block:
    if series := _SERIES.fullmatch(path):
        _same_project(env, series[1])
        return _time_series(env, query)
    words = {key for key, _ in query} - {"$alt", "alt", "maxResults", "pageToken"}
    if words:
        raise _Refusal(400, f"Invalid JSON payload received. Unknown name {min(words)!r}.")
    if found := _GLOBAL.fullmatch(path):
        project, collection, name, verb = found.groups()
        location = "global"
    elif found := _ZONAL.fullmatch(path):
        project, zone, collection, name, verb = found.groups()
        location = f"zones/{zone}"
    else:
        raise _Refusal(404, "Not Found")
    _same_project(env, project)
    if name is None:
        return _page(env.resources.get(collection, {}), dict(query))
    resource = env.resources.get(collection, {}).get(f"{location}/{name}")
    if resource is None:
        raise _Refusal(404, f"The resource 'projects/{project}/{location}/{collection}/{name}' was not found")
    if verb is None and method == "GET":
        return resource
    if method == "POST" and (collection, verb) == ("networkEndpointGroups", "listNetworkEndpoints"):
        return _endpoints(env, f"{location}/{name}", dict(query))
    if method == "POST" and (collection, verb) == ("backendServices", "getHealth"):
        return _health(env, resource, str(body.get("group", "")))
    raise _Refusal(404, "Not Found")


def _same_project(env: Env, project: str) -> None:
    if project != env.project:
        raise _Refusal(403, f"Required 'compute.read' permission for 'projects/{project}'")


def _page(resources: Mapping[str, Block], query: Mapping[str, str]) -> Block:
    """Small pages, so that whoever reads must turn them."""
    names = sorted(resources)
    start = int(query.get("pageToken") or 0)
    items = [resources[name] for name in names[start : start + PAGE]]
    following = {"nextPageToken": str(start + PAGE)} if start + PAGE < len(names) else {}
    return {"kind": "compute#list", "items": items, **following}


def _endpoints(env: Env, group: str, query: Mapping[str, str]) -> Block:
    found = {str(number): {"networkEndpoint": each} for number, each in enumerate(env.endpoints.get(group, []))}
    return _page(found, query)


def _health(env: Env, service: Block, group: str) -> Block:
    if group not in {backend["group"] for backend in service.get("backends", ())}:
        raise _Refusal(400, f"Invalid value for field 'resource.group': '{group}'. It is no backend of the service.")
    location = "/".join(group.split("/")[-4:-2])
    states = []
    for each in env.endpoints.get(f"{location}/{group.rpartition('/')[2]}", []):
        bad = (each["ipAddress"], each["port"]) in env.unhealthy
        states.append({**each, "healthState": "UNHEALTHY" if bad else "HEALTHY"})
    return {"kind": "compute#backendServiceGroupHealth", "healthStatus": states}


def _time_series(env: Env, query: list[tuple[str, str]]) -> Block:
    """Series of one metric, summed or ranked over each minute and group, a page for each."""
    words = dict(query)
    metric = _METRIC.fullmatch(words.get("filter", ""))
    if metric is None:
        raise _Refusal(400, "Field filter had an invalid value: the metric's type must be said.")
    start, end = _moment(words["interval.startTime"]), _moment(words["interval.endTime"])
    fields = [value.rpartition(".")[2] for key, value in query if key == "aggregation.groupByFields"]
    kept: dict[tuple[str, ...], dict[datetime, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in env.measured:
        if each.metric == metric[1] and start < each.at <= end:
            kept[tuple(each.labels.get(name, "") for name in fields)][each.at] += each.values
    location = int(words.get("pageToken") or 0)
    series = [_one(fields, key, kept[key], words["aggregation.crossSeriesReducer"]) for key in sorted(kept)]
    following = {"nextPageToken": str(location + 1)} if location + 1 < len(series) else {}
    return {"timeSeries": series[location : location + 1], **following, "unit": "1"}


def _one(fields: list[str], key: tuple[str, ...], minutes: Mapping[datetime, list[float]], reducer: str) -> Block:
    labels = dict(zip(fields, key, strict=True))
    metric = {name: value for name, value in labels.items() if name == "response_code_class"}
    return {
        "metric": {"labels": metric},
        "resource": {"labels": {name: value for name, value in labels.items() if name not in metric}},
        "points": [
            {"interval": {"endTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"}, "value": _reduced(minutes[at], reducer)}
            for at in sorted(minutes, reverse=True)
        ],
    }


def _reduced(values: list[float], reducer: str) -> Block:
    if reducer == "REDUCE_SUM":
        return {"int64Value": str(round(sum(values)))}
    share = int(reducer.removeprefix("REDUCE_PERCENTILE_")) / 100
    return {"doubleValue": sorted(values)[ceil(share * len(values)) - 1]}


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
