"""Health of endpoints, numbers, and load balancers that could be adopted, read by its own clients.

Ours are known by name (`sw-stk3-pool-1`), since backend services and groups have no labels. A load balancer is a URL
map with all proxies that use it, or a proxy of TCP. What this reader has met is a server shaped after Google's
documentation (`tests/conformance/fake_google.py`), never Google itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from apps.drivers.clouds.contract import (
    CloudAccess,
    CloudError,
    FoundLoadBalancer,
    FoundNetwork,
    FoundSubnet,
    Numbers,
    Standing,
    Stranger,
    TargetHealth,
)
from apps.drivers.clouds.google_numbers import read_numbers
from apps.drivers.clouds.google_session import TIMEOUT_S, GoogleSession, in_words

Block = dict[str, Any]
_OURS = re.compile(r"sw-(?P<stack>stk[0-9]+)-(?P<object>[a-z]+-[0-9]+)(-[0-9a-f]+)?")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
GLOBAL = "global"
_CALL: dict[str, Any] = {"timeout": TIMEOUT_S, "retry": None}
_HTTP_PROXIES = (("http", "TargetHttpProxiesClient"), ("https", "TargetHttpsProxiesClient"))


class GoogleReader:
    """One project of Google. Every call may raise CloudError."""

    def __init__(self, access: CloudAccess) -> None:
        self._session = GoogleSession(access)
        self._access = access

    def target_health(self) -> Sequence[TargetHealth]:
        """Every endpoint of the groups behind our backend services, as Google's check sees it."""
        with in_words(self._access):
            services = [each for each in self._listed("BackendServicesClient") if self._object_of(each.name)]
            return [
                health
                for service in services
                for backend in service.backends
                for health in self._health(service, backend)
            ]

    def numbers(self, since: datetime) -> Sequence[Numbers]:
        """Whole minutes since then, oldest first: of each group of endpoints, and of each listener of ours."""
        with in_words(self._access):
            return read_numbers(self._session, since, self._object_of)

    def standing(self, mark: str, kinds: Collection[str]) -> Iterator[Standing]:  # noqa: ARG002 - none is known
        """Nothing is known: what is made at Google carries no mark yet."""
        return iter(())

    def strangers(self, known: Collection[str]) -> Iterator[Stranger]:  # noqa: ARG002 - Terraform sees it
        """URL maps and groups of endpoints are whole there: what is added to one is a difference to Terraform."""
        return iter(())

    def load_balancers(self) -> Sequence[FoundLoadBalancer]:
        """URL maps and proxies of TCP."""
        with in_words(self._access):
            maps = [
                FoundLoadBalancer("URL map", each.name, f"urlMaps/{each.name}")
                for each in self._listed("UrlMapsClient")
            ]
            proxies = [
                FoundLoadBalancer("TCP proxy", each.name, f"targetTcpProxies/{each.name}")
                for each in self._listed("TargetTcpProxiesClient")
            ]
        return sorted((*maps, *proxies), key=lambda found: found.id)

    def describe(self, found_id: str) -> FoundLoadBalancer:
        """A URL map or a proxy of TCP with all that stands before and behind it; keys of certificates are no part."""
        collection, _, name = found_id.partition("/")
        if collection not in ("urlMaps", "targetTcpProxies") or not _NAME.fullmatch(name):
            raise CloudError(f"{found_id!r} is not a load balancer; write urlMaps/NAME or targetTcpProxies/NAME.")
        with in_words(self._access):
            described = self._url_map(name) if collection == "urlMaps" else self._tcp_proxy(name)
        kind = "URL map" if collection == "urlMaps" else "TCP proxy"
        return FoundLoadBalancer(kind, name, found_id, described)

    def regions(self) -> Sequence[str]:
        """Load balancers of a stack are global there."""
        return [GLOBAL]

    def buckets(self) -> Sequence[str]:
        """None: Google keeps the lines of a load balancer in its own store of logs."""
        return []

    def networks(self) -> Sequence[FoundNetwork]:
        """Networks of the project; each names its subnetworks."""
        with in_words(self._access):
            return [
                FoundNetwork(each.name, subnets=tuple(map(_subnetwork, each.subnetworks)))
                for each in self._listed("NetworksClient")
            ]

    def _object_of(self, name: str) -> str:
        """The object of ours that a name tells: `sw-stk3-bkd-4-0a1b2` → `bkd-4`; empty for what is not the stack's."""
        found = _OURS.fullmatch(name)
        if found is None or (self._access.stack and found["stack"] != self._access.stack.replace("-", "")):
            return ""
        return found["object"]

    def _listed(self, client: str) -> Iterator[Any]:
        """Everything of one kind; the client turns the pages itself."""
        yield from self._session.client(client).list(project=self._access.project, **_CALL)

    def _health(self, service: Any, backend: Any) -> Iterator[TargetHealth]:
        from google.cloud.compute_v1.types import ResourceGroupReference

        answer = self._session.client("BackendServicesClient").get_health(
            project=self._access.project,
            backend_service=service.name,
            resource_group_reference_resource=ResourceGroupReference(group=backend.group),
            **_CALL,
        )
        group = _last(backend.group)
        for each in answer.health_status:
            reason = ", ".join(f"{word}: {text}" for word, text in sorted(each.annotations.items()))
            yield TargetHealth(
                group, self._object_of(group), each.ip_address, each.port, each.health_state.lower(), reason
            )

    def _url_map(self, name: str) -> Block:
        url_map = _plain(self._session.client("UrlMapsClient").get(project=self._access.project, url_map=name, **_CALL))
        proxies = [
            {**_plain(each), "protocol": protocol}
            for protocol, client in _HTTP_PROXIES
            for each in self._listed(client)
            if _last(each.url_map) == name
        ]
        return {"urlMap": url_map, **self._around(proxies, _services_in(url_map))}

    def _tcp_proxy(self, name: str) -> Block:
        client = self._session.client("TargetTcpProxiesClient")
        proxy = _plain(client.get(project=self._access.project, target_tcp_proxy=name, **_CALL))
        return self._around([{**proxy, "protocol": "tcp"}], {proxy.get("service", "")})

    def _around(self, proxies: list[Block], services: set[str]) -> Block:
        """What points at the proxies, and what stands behind the services."""
        names = {proxy["name"] for proxy in proxies}
        rules = [_plain(each) for each in self._listed("GlobalForwardingRulesClient") if _last(each.target) in names]
        wanted = {_last(service) for service in services if "/backendServices/" in service}
        found = {each.name: _plain(each) for each in self._listed("BackendServicesClient") if each.name in wanted}
        groups = {backend["group"] for service in found.values() for backend in service.get("backends", ())}
        checks = {_last(check) for service in found.values() for check in service.get("healthChecks", ())}
        return {
            "proxies": proxies,
            "forwardingRules": rules,
            "backendServices": found,
            "groups": {
                _group_key(each): self._group(each) for each in sorted(groups) if "/networkEndpointGroups/" in each
            },
            "healthChecks": {
                each.name: _plain(each) for each in self._listed("HealthChecksClient") if each.name in checks
            },
        }

    def _group(self, url: str) -> Block:
        """A group with its endpoints; the zone is part of its URL, and global ones have none."""
        name, zone = _last(url), _zone_of(url)
        if zone:
            client, word = self._session.client("NetworkEndpointGroupsClient"), {"zone": zone}
            listed: dict[str, Any] = {
                "network_endpoint_groups_list_endpoints_request_resource": {"health_status": "SKIP"}
            }
        else:
            client, word, listed = self._session.client("GlobalNetworkEndpointGroupsClient"), {}, {}
        where = {"project": self._access.project, "network_endpoint_group": name, **word}
        group = _plain(client.get(**where, **_CALL))
        endpoints = client.list_network_endpoints(**where, **listed, **_CALL)
        return {**group, "endpoints": [_plain(each.network_endpoint) for each in endpoints]}


def _plain(message: Any) -> Block:
    """A message as Google's REST API writes it."""
    found: Block = type(message).to_dict(
        message,
        use_integers_for_enums=False,
        preserving_proto_field_name=False,
        always_print_fields_with_no_presence=False,
    )
    return found


def _services_in(value: Any) -> set[str]:
    """Every backend service that a URL map names, however deep."""
    if isinstance(value, Mapping):
        return set().union(*map(_services_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(_services_in, value))
    return {value} if isinstance(value, str) and "/backendServices/" in value else set()


def _subnetwork(url: str) -> FoundSubnet:
    """`…/regions/europe-west3/subnetworks/web` is `web` in `europe-west3`."""
    return FoundSubnet(_last(url), zone=url.partition("/regions/")[2].partition("/")[0])


def _last(url: str) -> str:
    return url.rpartition("/")[2]


def _zone_of(url: str) -> str:
    _, mark, after = url.partition("/zones/")
    return after.partition("/")[0] if mark else ""


def _group_key(url: str) -> str:
    """`…/zones/europe-west3-a/networkEndpointGroups/neg` → `europe-west3-a/neg`; names are a zone's own."""
    return f"{_zone_of(url) or 'global'}/{_last(url)}"
