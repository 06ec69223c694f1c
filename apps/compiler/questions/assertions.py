"""Assertions: what somebody says must happen to a request is held against what would happen to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from apps.compiler.matching import hosts
from apps.compiler.matching.hosts import names_that_cover
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Assertion, LoadBalancer, Protocol, Route
from apps.compiler.questions.trace import Question, Trace, trace


@dataclass(frozen=True, slots=True)
class Broken:
    """An assertion that does not hold: whose, which (from 0), and what happens instead, in a sentence."""

    route: Route
    index: int
    sentence: str


def broken(snapshot: Snapshot, left_out: Collection[str] = ()) -> tuple[Broken, ...]:
    """Every assertion that does not hold, in the order of the routes; `left_out` are ids that the checks refused."""
    labels = {pool.id: pool.label for pool in snapshot.pools}
    found: list[Broken] = []
    for front in snapshot.load_balancers:
        routes = tuple(route for route in front.routes if route.id not in left_out)
        found += broken_of(replace(front, routes=routes), labels)
    return tuple(found)


def broken_of(load_balancer: LoadBalancer, labels: Mapping[str, str]) -> list[Broken]:
    """The assertions of one load balancer that do not hold; `labels` say what people call a pool."""
    asking = [route for route in load_balancer.routes if route.assertions]
    if not asking:
        return []
    by_host: dict[str, list[Route]] = defaultdict(list)
    for route in load_balancer.routes:
        by_host[route.hostname].append(route)
    found = []
    for route in asking:
        for index, assertion in enumerate(route.assertions):
            question = question_of(assertion, route, load_balancer)
            names = names_that_cover(question.bare_host)
            around = replace(load_balancer, routes=tuple(each for name in names for each in by_host.get(name, ())))
            outcome = trace(around, question)
            if not _holds(assertion, outcome, labels):
                asked = f"{question.method} {question.host}{question.path}"
                sentence = f"{asked} should {_wanted(assertion)}, but it {happens(outcome, labels)}."
                found.append(Broken(route, index, sentence))
    return found


def question_of(assertion: Assertion, route: Route, load_balancer: LoadBalancer) -> Question:
    """The request that an assertion speaks of; without a host it is the route's own, over https where that may be."""
    has_https = any(listener.protocol is Protocol.HTTPS for listener in load_balancer.listeners)
    secure = route.scheme == "https" if route.scheme else has_https
    return Question(
        host=host_of(assertion, route.hostname),
        path=assertion.path,
        method=assertion.method,
        scheme=Protocol.HTTPS if secure else Protocol.HTTP,
        headers=dict(assertion.headers),
    )


def host_of(assertion: Assertion, hostname: str) -> str:
    """The host that an assertion of a route of `hostname` speaks of; any name stands for a wildcard."""
    return assertion.host or hosts.example_of(hostname)


def _holds(assertion: Assertion, found: Trace, labels: Mapping[str, str]) -> bool:
    if assertion.pool:
        return [labels.get(share.pool_id) for share in found.pools] == [assertion.pool]
    if assertion.route:
        return found.winner is not None and found.winner.label == assertion.route
    if assertion.redirect is not None:
        return found.location is not None and assertion.redirect in ("", found.location)
    return found.status == assertion.status


def _wanted(assertion: Assertion) -> str:
    if assertion.pool:
        return f"go to pool {assertion.pool}"
    if assertion.route:
        return f"match route {assertion.route}"
    if assertion.redirect is not None:
        return f"be redirected to {assertion.redirect}" if assertion.redirect else "be redirected"
    return f"get status {assertion.status}"


def happens(found: Trace, labels: Mapping[str, str]) -> str:
    """What happens to a request, as the end of a sentence that begins with "it"."""
    since = f", since {found.refusal.sentence}" if found.refusal else ""
    if found.is_closed:
        return f"is disconnected by the listener{since}"
    by = f" by route {found.winner.label}" if found.winner else ""
    if found.location is not None:
        return f"is redirected to {found.location}{by}"
    if found.status is not None:
        if found.winner is None:
            return f"matches no route and gets status {found.status}"
        return f"gets status {found.status} from route {found.winner.label}{since}"
    parts = [f"{labels.get(each.pool_id, each.pool_id)} ({100 * each.part:.0f} %)" for each in found.pools]
    names = ", ".join(parts) if len(parts) > 1 else parts[0].rpartition(" (")[0]
    copy = found.mirror_pool_id
    mirrored = f", and a copy to pool {labels.get(copy, copy)}" if copy else ""
    return f"goes to pool {names}{by}{mirrored}"
