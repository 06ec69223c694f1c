"""A described Application or Network Load Balancer as a load balancer with its routes and pools.

`described` is what `drivers/clouds/aws_describing.py` reads. ALB asks rules in the order of their priority, routes of
ours win by what they say: where that is another order the report says so, and a rule that was never reached is left
out. A host of ours comes before its wildcard, so a rule of a wildcard that was asked before one of such a host becomes
a route of that host as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.adoption.aws_pools import Pools
from apps.adoption.aws_rules import action_of, candidates_of, hosts_of
from apps.adoption.candidates import Candidate, Unsaid, certificates_of, route_of
from apps.adoption.contract import Adoption, Report, Wish
from apps.adoption.naming import Names
from apps.adoption.ranking import covers, overlap, rank, shadows
from apps.compiler.grammar import GrammarError, hostname
from apps.drivers.clouds.contract import FoundLoadBalancer

Block = Mapping[str, Any]
PROTOCOLS = {"HTTP": "http", "HTTPS": "https", "TCP": "tcp"}
NOT_FOUND = 404
# Attributes with the value that says nothing, and what is lost with any other.
LOST = {
    "idle_timeout.timeout_seconds": ("60", "The timeouts of the pools end connections."),
    "routing.http.xff_header_processing.mode": ("append", "Nodes always replace X-Forwarded-For."),
    "routing.http.preserve_host_header.enabled": ("false", "Servers always see the client's Host header."),
    "waf.fail_open.enabled": ("false", "Spillway has no web application firewall."),
    "load_balancing.cross_zone.enabled": ("true", "Every server gets its share, whatever its zone."),
    "zonal_shift.config.enabled": ("false", "Spillway drains regions, not zones."),
    "connection_logs.s3.enabled": ("false", "Spillway does not log single connections."),
}


def adopt(found: FoundLoadBalancer, wish: Wish) -> Adoption:
    """Documents of pools, the load balancer and its routes, in this order, and what became of each thing."""
    report, names = Report(), Names(wish.name)
    pools = Pools(found.described, wish, names, report)
    balancer: Block = found.described.get("loadBalancer", {})
    listeners = [
        listener
        for each in sorted(found.described.get("listeners", ()), key=lambda each: int(each.get("Port") or 0))
        if (listener := _listener(each, wish, pools, report)) is not None
    ]
    routes = _Routes(wish, pools, names, report)
    for number, each in enumerate(found.described.get("listeners", ())):
        routes.adopt(each, is_first=number == 0)
    pools.unused()
    _rest(found, balancer, report)
    report.mapped(f"{found.kind} {found.name}", "LoadBalancer", wish.name)
    spec: dict[str, Any] = {"listeners": listeners, **({"stacks": [wish.stack]} if wish.stack else {})}
    front = {"kind": "LoadBalancer", "name": wish.name, "spec": spec}
    return Adoption((*pools.documents, front, *routes.documents), tuple(report.lines))


def _rest(found: FoundLoadBalancer, balancer: Block, report: Report) -> None:
    """What belongs to the load balancer as a whole."""
    where = f"{found.kind} {found.name}"
    for key, (usual, reason) in LOST.items():
        if found.described.get("attributes", {}).get(key, usual) not in (usual, ""):
            report.lossy(f"{where}, {key}", reason)
    if balancer.get("SecurityGroups"):
        report.lossy(f"{where}, security groups", "The client networks of the stack decide who may connect.")
    if balancer.get("Scheme") == "internal":
        report.lossy(f"{where}, scheme", "The imported load balancer is public.")
    if balancer.get("IpAddressType", "ipv4") != "ipv4":
        report.lossy(f"{where}, addresses", "Clients reach it by IPv4 only.")


def _listener(listener: Block, wish: Wish, pools: Pools, report: Report) -> dict[str, Any] | None:
    port, spoken = int(listener.get("Port") or 0), listener.get("Protocol", "")
    where = f"listener {spoken} {port}"
    if spoken not in PROTOCOLS:
        report.left_out(where, f"Listeners support only http, https and tcp, not {spoken or 'this protocol'}.")
        return None
    protocol = PROTOCOLS[spoken]
    found: dict[str, Any] = {"name": f"{protocol}-{port}", "protocol": protocol, "port": port}
    if protocol == "https":
        certificates = _certificates(where, listener, wish, report)
        if not certificates:
            return None
        found["certificates"] = certificates
    pool = _default_pool(where, listener, "tcp" if protocol == "tcp" else "http", pools, report)
    if pool is not None:
        found["default_pool"] = f"{wish.account}/{pool}"
    elif protocol == "tcp":
        report.left_out(where, "A tcp listener needs a pool, and its target group could not be imported.")
        return None
    report.mapped(where, "LoadBalancer", f"{wish.name}/{found['name']}")
    return found


def _certificates(where: str, listener: Block, wish: Wish, report: Report) -> list[str]:
    theirs = sorted({each["CertificateArn"] for each in listener.get("Certificates", ())})
    return certificates_of(where, theirs, wish, report)


def _default_pool(where: str, listener: Block, protocol: str, pools: Pools, report: Report) -> str | None:
    """The pool of requests without a route; None where the listener answers itself."""
    try:
        kind, *words = action_of(list(listener.get("DefaultActions", ())))
    except Unsaid as unsaid:
        report.left_out(f"{where}, default action", unsaid.reason)
        return None
    if kind == "pools" and len(words) == 1:
        return pools.name_of(words[0][0], protocol)
    if kind == "pools":
        heaviest = max(words, key=lambda share: int(share[1]))
        reason = "A listener has one default pool: the group with the highest weight gets all requests."
        report.lossy(f"{where}, default action", reason)
        return pools.name_of(heaviest[0], protocol)
    if kind == "fixed" and dict(words)["status"] == NOT_FOUND:
        if len(words) > 1 and dict(words).get("body"):
            report.lossy(f"{where}, default action", "Requests without a route get Spillway's 404 page.")
        return None
    reason = "It answers every host, but routes need a hostname. Other hosts get 404 or the default pool."
    report.left_out(f"{where}, default action", reason)
    return None


@dataclass(frozen=True, slots=True)
class _Placed:
    """What a rule takes on one host; `where` names the rule, `priority` is the rule's."""

    where: str
    priority: int
    host: str
    candidate: Candidate


class _Routes:
    """The routes of a load balancer as documents; listeners with the same rules have the same routes."""

    def __init__(self, wish: Wish, pools: Pools, names: Names, report: Report) -> None:
        self._wish, self._pools, self._names, self._report = wish, pools, names, report
        self._known: dict[tuple[str, Candidate], str] = {}
        self._of_host: dict[str, list[Candidate]] = {}
        self.documents: list[dict[str, Any]] = []

    def adopt(self, listener: Block, *, is_first: bool) -> None:
        """The rules of one listener, in their order; its default is the listener's."""
        rules = [rule for rule in listener.get("Rules", ()) if not rule.get("IsDefault")]
        rules.sort(key=lambda rule: int(rule["Priority"]))
        where = f"listener {listener.get('Protocol')} {listener.get('Port')}"
        if not is_first and rules:
            reason = "Routes belong to the load balancer: each listener serves all of them."
            self._report.lossy(f"{where}, rules", reason)
        every = sorted({host for rule in rules for host in self._hosts_quietly(rule)})
        before: dict[str, list[_Placed]] = {}
        for rule in rules:
            for placed in self._rule(f"{where}, rule {rule['Priority']}", rule, every):
                self._after_wildcards(placed, before)
                self._candidate(placed, before.setdefault(placed.host, []))

    def _hosts_quietly(self, rule: Block) -> list[str]:
        try:
            return [host for host in hosts_of(rule) if _is_host(host)]
        except Unsaid:
            return []

    def _rule(self, where: str, rule: Block, every: list[str]) -> list[_Placed]:
        """What it takes on each host; those that it names come before their wildcards, which take the same."""
        try:
            action = action_of(list(rule.get("Actions", ())))
            candidates, loss = candidates_of(rule, action)
            hosts = self._hosts(where, hosts_of(rule), every)
        except Unsaid as unsaid:
            self._report.left_out(where, unsaid.reason)
            return []
        if loss:
            self._report.lossy(where, loss)
        named = sorted(hosts, key=lambda host: (host.startswith("*."), -len(host), host))
        priority = int(rule["Priority"])
        return [_Placed(where, priority, host, candidate) for host in named for candidate in candidates]

    def _after_wildcards(self, placed: _Placed, before: dict[str, list[_Placed]]) -> None:
        """What wildcards before it take of its host is taken there first, and so is what comes before that."""
        here = before.setdefault(placed.host, [])
        ahead = [each for host in before if covers(host, placed.host) for each in before[host]]
        needed = [placed]
        for earlier in sorted(ahead, key=lambda each: -each.priority):
            if any(overlap(earlier.candidate, each.candidate) for each in needed):
                needed.append(earlier)
        for earlier in reversed(needed[1:]):
            if not any(each.candidate == earlier.candidate for each in here):
                self._candidate(replace(earlier, host=placed.host), here)

    def _hosts(self, where: str, given: list[str], every: list[str]) -> list[str]:
        """The hosts of a rule that routes can have; one without a host condition takes those that others name."""
        if not given:
            if not every:
                raise Unsaid("It matches every host, but routes need a hostname, and no other rule has one.")
            self._report.lossy(where, "It matches every host. The routes match only the hosts of other rules.")
            return every
        for host in given:
            if not _is_host(host):
                self._report.left_out(f"{where}, {host}", "Spillway supports only *.name as a pattern of hosts.")
            elif host.startswith("*."):
                self._report.lossy(f"{where}, {host}", "A wildcard matches exactly one label.")
        return [host for host in given if _is_host(host)]

    def _candidate(self, placed: _Placed, before: list[_Placed]) -> None:
        host, candidate, where = placed.host, placed.candidate, f"{placed.where}, {placed.host}{placed.candidate.path}"
        if any(shadows(earlier.candidate, candidate) for earlier in before):
            self._report.left_out(where, "A rule before it takes all of its requests, so it never matched.")
            return
        for earlier in (each.candidate for each in before):
            if rank(candidate) < rank(earlier) and overlap(earlier, candidate):
                self._report.lossy(
                    where, f"It comes before the rule for {earlier.path} in Spillway, and came after it in the cloud."
                )
        before.append(placed)
        if (host, candidate) in self._known:
            self._report.mapped(where, "Route", self._known[host, candidate])
            return
        if any(_same_requests(candidate, other) for other in self._of_host.get(host, ())):
            self._report.left_out(where, "Another listener handles the same requests differently.")
            return
        self._write(where, host, candidate)

    def _write(self, where: str, host: str, candidate: Candidate) -> None:
        action = self._action(candidate.action)
        if action is None:
            self._report.left_out(where, "Its target group could not be imported.")
            return
        name = self._names.of(host.replace("*", "any"), candidate.path)
        spec = route_of(self._wish, host, candidate, action)
        self._known[host, candidate] = name
        self._of_host.setdefault(host, []).append(candidate)
        self._report.mapped(where, "Route", name)
        self.documents.append({"kind": "Route", "name": name, "account": self._wish.account, "spec": spec})

    def _action(self, action: tuple[Any, ...]) -> dict[str, Any] | None:
        kind, *words = action
        if kind == "redirect":
            return {"redirect": dict(words)}
        if kind == "fixed":
            return {"fixed_response": dict(words)}
        names = [(self._pools.name_of(arn), weight) for arn, weight in words]
        if any(name is None for name, _ in names):
            return None
        return {"pools": [{"pool": name, "weight": weight} for name, weight in names]}


def _is_host(host: str) -> bool:
    try:
        hostname(host)
    except GrammarError:
        return False
    return True


def _same_requests(one: Candidate, other: Candidate) -> bool:
    return (one.path, one.exact, one.methods, one.headers) == (other.path, other.exact, other.methods, other.headers)
