"""A described URL map, or a proxy of TCP, as a load balancer with its routes and pools.

`described` is what `drivers/clouds/google.py` reads, in the words of Google's REST API: `urlMap`, `proxies` (with
`protocol` http, https or tcp), `forwardingRules`, and by name `backendServices`, `groups` and `healthChecks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.adoption.candidates import Unsaid, certificates_of
from apps.adoption.contract import Adoption, Report, Wish
from apps.adoption.google_pools import Pools, last
from apps.adoption.google_routes import Routes
from apps.adoption.google_rules import action_of
from apps.adoption.naming import Names
from apps.drivers.clouds.contract import FoundLoadBalancer

Block = Mapping[str, Any]


def adopt(found: FoundLoadBalancer, wish: Wish) -> Adoption:
    """Documents of pools, the load balancer and its routes, in this order, and what became of each thing."""
    report, names = Report(), Names(wish.name)
    pools = Pools(found.described, wish, names, report)
    url_map: Block = found.described.get("urlMap") or {}
    listeners = _listeners(found.described, url_map, wish, pools, report)
    routes = Routes(url_map, wish, pools, names, report)
    routes.adopt()
    report.mapped(f"{found.kind} {found.name}", "LoadBalancer", wish.name)
    spec: dict[str, Any] = {"listeners": listeners, **({"stacks": [wish.stack]} if wish.stack else {})}
    front = {"kind": "LoadBalancer", "name": wish.name, "spec": spec}
    return Adoption((*pools.documents, front, *routes.documents), tuple(report.lines))


def _listeners(described: Block, url_map: Block, wish: Wish, pools: Pools, report: Report) -> list[dict[str, Any]]:
    """One for each forwarding rule to one of the proxies."""
    proxies = {proxy["name"]: proxy for proxy in described.get("proxies", ())}
    found = []
    for rule in described.get("forwardingRules", ()):
        proxy = proxies[last(rule["target"])]
        listener = _listener(rule, proxy, url_map, wish, pools, report)
        if listener is not None:
            found.append(listener)
    return found


def _listener(
    rule: Block, proxy: Block, url_map: Block, wish: Wish, pools: Pools, report: Report
) -> dict[str, Any] | None:
    where, protocol = f"forwarding rule {rule['name']}", proxy["protocol"]
    low, _, high = str(rule.get("portRange", "")).partition("-")
    if not low or high not in ("", low):
        report.left_out(where, "This rule has a range of ports, but a listener has one port.")
        return None
    name = f"{protocol}-{low}"
    listener: dict[str, Any] = {"name": name, "protocol": protocol, "port": int(low)}
    if protocol == "https":
        certificates = _certificates(where, proxy, wish, report)
        if not certificates:
            return None
        listener["certificates"] = certificates
    service = proxy.get("service") if protocol == "tcp" else _default_service(url_map)
    pool = pools.name_of(service, "tcp" if protocol == "tcp" else "http") if service else None
    if pool is not None:
        listener["default_pool"] = f"{wish.account}/{pool}"
    elif protocol == "tcp":
        report.left_out(where, "A tcp listener needs a pool, and its backend service could not be imported.")
        return None
    address = wish.addresses.get(rule.get("IPAddress", ""))
    if address:
        listener["static_ip"] = address
    else:
        report.lossy(
            where, f"Its address {rule.get('IPAddress', '')} stays in the cloud until you map it to a static IP."
        )
    report.mapped(where, "LoadBalancer", f"{wish.name}/{name}")
    return listener


def _default_service(url_map: Block) -> str | None:
    """The service of requests without a route, None where the map answers them itself or redirects them."""
    try:
        kind, *shares = action_of(url_map, "default")
    except Unsaid:
        return None
    return shares[0][0] if kind == "pools" and len(shares) == 1 else None


def _certificates(where: str, proxy: Block, wish: Wish, report: Report) -> list[str]:
    found = certificates_of(where, [last(each) for each in proxy.get("sslCertificates", ())], wish, report)
    if proxy.get("certificateMap"):
        report.lossy(where, "The proxy does not list the certificates of a certificate map.")
    return found
