"""Backend services with their groups of endpoints and health checks as pools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from apps.adoption.contract import Report, Wish
from apps.adoption.naming import Names
from apps.compiler.targets.terraform.google.services import LOCALITY, UNBOUNDED

Block = Mapping[str, Any]

BALANCE = {policy: balance.value for balance, policy in LOCALITY.items()}
PROTOCOLS = {"HTTP": "http", "TCP": "tcp"}
# Kinds of groups whose endpoints are servers with an address of their own, and what is lost with each.
GROUPS = {
    "NON_GCP_PRIVATE_IP_PORT": "",
    "GCE_VM_IP_PORT": "its servers are the present addresses of its machines; later machines are not added",
    "INTERNET_FQDN_PORT": "",
    "INTERNET_IP_PORT": "",
}
LOST = {
    "enableCDN": "Cloud CDN no longer caches",
    "iap": "the Identity-Aware Proxy no longer requires people to sign in",
    "securityPolicy": "the rules of Cloud Armor no longer apply",
    "edgeSecurityPolicy": "the edge rules of Cloud Armor no longer apply",
    "customRequestHeaders": "headers are not added to requests",
    "customResponseHeaders": "headers are not added to responses",
    "outlierDetection": "only the health check decides whether a server is up",
    "circuitBreakers": "use a limit of connections instead",
    "compressionMode": "responses are not compressed",
    "serviceLbPolicy": "overflow goes to the nearest region with capacity",
    "maxStreamDuration": "only the server timeout ends streams",
    "consistentHash": "the hash can only use the client's address",
}


class Pools:
    """Backend services that were asked for, each once, as pools; one that cannot be a pool is None."""

    def __init__(self, described: Block, wish: Wish, names: Names, report: Report) -> None:
        self._services: Mapping[str, Block] = described.get("backendServices", {})
        self._groups: Mapping[str, Block] = described.get("groups", {})
        self._checks: Mapping[str, Block] = described.get("healthChecks", {})
        self._wish, self._names, self._report = wish, names, report
        self._found: dict[str, str | None] = {}
        self.documents: list[dict[str, Any]] = []

    def name_of(self, service: str, protocol: str = "http") -> str | None:
        """The pool of a backend service (its URL or name), None when it could not become one of this protocol."""
        word = last(service)
        if word not in self._found:
            self._found[word] = self._adopted(word, protocol)
        return self._found[word]

    def _adopted(self, word: str, protocol: str) -> str | None:
        found, service = f"backend service {word}", self._services.get(word)
        if service is None:
            self._report.left_out(found, "Its backend service could not be read. Spillway does not support buckets.")
            return None
        if PROTOCOLS.get(service.get("protocol", "HTTP")) != protocol:
            theirs = service.get("protocol")
            reason = (
                f"It connects to its servers by {theirs}, but pools connect to servers by http or tcp, without TLS."
            )
            self._report.left_out(found, reason)
            return None
        name = self._names.of(word)
        spec = {
            "protocol": protocol,
            "balance": self._balance(found, service),
            "server_timeout_ms": 1000 * int(service.get("timeoutSec", 30)),
            "backends": self._backends(found, service),
            **self._health_check(found, service),
        }
        for field in sorted(LOST.keys() & service.keys()):
            if service[field] and not (field == "iap" and not service[field].get("enabled")):
                self._report.lossy(f"{found}, {field}", f"{LOST[field].capitalize()}.", "Pool", name)
        self._report.mapped(found, "Pool", name)
        self.documents.append({"kind": "Pool", "name": name, "account": self._wish.account, "spec": spec})
        return name

    def _balance(self, found: str, service: Block) -> str:
        affinity = service.get("sessionAffinity", "NONE")
        if affinity.startswith("CLIENT_IP"):
            return "source"
        if affinity != "NONE":
            self._report.lossy(found, f"Stickiness is gone; it used {affinity.lower().replace('_', ' ')}.")
        policy = service.get("localityLbPolicy", "ROUND_ROBIN")
        if policy not in BALANCE or BALANCE[policy] == "source":
            if affinity == "NONE":
                self._report.lossy(found, f"Servers are chosen round robin, not by {policy.lower().replace('_', ' ')}.")
            return "roundrobin"
        return BALANCE[policy]

    def _backends(self, found: str, service: Block) -> list[dict[str, Any]]:
        """One for each region of ours; the groups of its zones are one backend together."""
        parts: dict[str, list[tuple[Block, Block]]] = defaultdict(list)
        for backend in service.get("backends", ()):
            group = self._groups.get(group_key(backend["group"]))
            region = self._region(found, backend, group)
            if group is not None and region is not None:
                parts[region].append((backend, group))
        return [self._backend(found, region, parts[region]) for region in parts]

    def _region(self, found: str, backend: Block, group: Block | None) -> str | None:
        where = f"{found}, group {last(backend['group'])}"
        kind = (group or {}).get("networkEndpointType", "")
        if group is None or kind not in GROUPS:
            what = kind or "an instance group"
            self._report.left_out(where, f"Its servers cannot be listed by address: it is {what}.")
            return None
        zone = last(group.get("zone", "global"))
        region = self._wish.regions.get(zone)
        if region is None:
            self._report.left_out(where, f"Say which region zone {zone} belongs to.")
        elif GROUPS[kind]:
            self._report.lossy(where, f"{GROUPS[kind].capitalize()}.")
        return region

    def _backend(self, found: str, region: str, parts: list[tuple[Block, Block]]) -> dict[str, Any]:
        names = Names("server")
        endpoints = {
            (each.get("ipAddress") or each.get("fqdn", ""), int(each.get("port") or group.get("defaultPort") or 80))
            for _, group in parts
            for each in group.get("endpoints", ())
        }
        scalers = {float(backend.get("capacityScaler", 1.0)) for backend, _ in parts}
        if len(scalers) > 1:
            self._report.lossy(
                found, f"The groups in {region} have several capacity scalers; the import uses the highest."
            )
        return {
            "region": region,
            "limit": self._limit(found, region, [backend for backend, _ in parts]),
            "capacity_scaler": max(scalers),
            "servers": [
                {"name": names.of(host.replace(".", "-"), str(port)), "address": host, "port": port}
                for host, port in sorted(endpoints)
            ],
        }

    def _limit(self, found: str, region: str, backends: list[Block]) -> dict[str, Any]:
        """The target capacities of the region's groups as one limit: sums of groups, the least of endpoints."""
        for kind, word in (("rate", "maxRate"), ("connections", "maxConnections")):
            per_server = [float(each[f"{word}PerEndpoint"]) for each in backends if each.get(f"{word}PerEndpoint")]
            whole = [float(each[word]) for each in backends if each.get(word)]
            if len(per_server) == len(backends):
                value = int(min(per_server))
                if value != max(per_server):
                    self._report.lossy(found, f"The limit for each server in {region} is the lowest, {value}.")
                return {"kind": kind, "value": value, "scope": "server"} if value < UNBOUNDED else {"kind": "none"}
            if len(whole) == len(backends):
                return {"kind": kind, "value": int(sum(whole)), "scope": "backend"}
        self._report.lossy(
            found,
            f"Its groups in {region} have no common target in requests or connections, so the backend has no limit.",
        )
        return {"kind": "none"}

    def _health_check(self, found: str, service: Block) -> dict[str, Any]:
        checks = [self._checks.get(last(each)) for each in service.get("healthChecks", ())]
        if not checks or checks[0] is None:
            return {}
        check = checks[0]
        words: dict[str, Any] = {
            "interval_ms": 1000 * int(check.get("checkIntervalSec", 5)),
            "timeout_ms": 1000 * int(check.get("timeoutSec", 5)),
            "rise": int(check.get("healthyThreshold", 2)),
            "fall": int(check.get("unhealthyThreshold", 2)),
        }
        http = check.get("httpHealthCheck")
        if http is not None:
            words |= {"path": http.get("requestPath", "/"), "host": http.get("host", "")}
        elif "tcpHealthCheck" not in check:
            self._report.lossy(found, f"Its health check of type {check.get('type')} becomes a TCP connection check.")
        detail = http or check.get("tcpHealthCheck") or {}
        if detail.get("portSpecification") == "USE_FIXED_PORT" or detail.get("response") or detail.get("request"):
            self._report.lossy(found, "Its health check uses the port of the server and ignores the text.")
        return {"health_check": words}


def last(url: str) -> str:
    """The last part of a URL: the resource's own name."""
    return url.rstrip("/").rpartition("/")[2]


def group_key(url: str) -> str:
    """`…/zones/europe-west3-a/networkEndpointGroups/neg` → `europe-west3-a/neg`; names are a zone's own."""
    parts = url.rstrip("/").split("/")
    return "/".join((parts[-3], parts[-1])) if len(parts) > 3 else url
