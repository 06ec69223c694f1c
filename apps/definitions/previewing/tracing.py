"""What would happen to a request, told to somebody who may know it.

The compiler's own evaluator answers (compiler/questions/trace.py), over the routes that nodes get. Customers ask about
hosts that they claimed, and are told of their own routes only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.compiler import grammar
from apps.compiler.matching.hosts import names_that_cover
from apps.compiler.model import shared as model
from apps.compiler.model.policy import Overflow as RouteOverflow
from apps.compiler.model.servers import OverflowMode
from apps.compiler.policies import NOTHING as NO_RULES
from apps.compiler.policies import rules_of
from apps.compiler.questions.assertions import happens
from apps.compiler.questions.trace import Question, Trace, trace
from apps.compiler.routing import number_of
from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.frozen_routes import RoutesServed, frozen_front, frozen_routes
from apps.definitions.freezing.frozen_servers import open_to
from apps.definitions.freezing.listener_options import with_access
from apps.definitions.models import Backend, LoadBalancer, Pool, Route, RoutePool
from apps.definitions.previewing.times import Times, times_of
from apps.definitions.reading.fields import Reader
from apps.definitions.serving import usable_servers
from apps.definitions.shapes.base.words import word
from apps.definitions.shapes.traffic.pool import Overflow
from apps.fleet.models import Region
from apps.fleet.selectors import overflow_orders

MOST_HEADERS = 50
MOST_PASSED_OVER = 50
NOTHING = "You have no route that matches this request."
_PATH = re.compile(r"/[!-~]{0,2047}")
_HEADER_VALUE = re.compile(r"[ -~]{0,1024}")


@dataclass(frozen=True, slots=True)
class Served:
    """Where a pool's part of a region's requests would be served: `served_in` None where no server is ready."""

    region: str
    pool: str
    served_in: str | None
    ready_servers: int


@dataclass(frozen=True, slots=True)
class Traced:
    """What one load balancer does with the request; routes are numbers and labels, pools labels and parts (0 to 1).

    `mirror` is the label of the pool that gets a copy, `times` what holds at each pool of http; `guards` are blocks of
    rules that may refuse the request before.
    """

    load_balancer: str
    listener: str | None
    route: tuple[int, str] | None
    passed_over: tuple[tuple[str, str, str], ...]
    pools: tuple[tuple[str, float], ...]
    mirror: str | None
    path: str
    status: int | None
    location: str | None
    served: tuple[Served, ...]
    times: tuple[Times, ...]
    sentence: str
    guards: tuple[str, ...] = ()


def read_question(data: object) -> tuple[Question, str | None]:
    """`{host, path?, method?, scheme?, headers?, client?, load_balancer?}`. Raises Invalid with every error."""
    field_errors: list[FieldError] = []
    reader = Reader(data, "", field_errors)
    host = reader.required("host", grammar.redirect_host)
    path = reader.optional("path", _path, "/")
    method = reader.optional("method", grammar.method, "GET")
    scheme = reader.optional("scheme", word(model.Protocol).read, model.Protocol.HTTPS)
    balancer = reader.optional("load_balancer", grammar.name, None)
    headers = reader.optional("headers", _headers, {})
    client = reader.optional("client", _address, "")
    if scheme is model.Protocol.TCP:
        reader.add_error("scheme", "choice", "Use http or https; TCP connections have no routes.")
    reader.close()
    if field_errors:
        raise Invalid(field_errors)
    return Question(host, path, method, scheme, headers, client), balancer


def _path(value: object) -> str:
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise grammar.GrammarError("path", "Start the path with /, followed by at most 2047 visible ASCII characters.")
    return value


def _address(value: object) -> str:
    return grammar.listen_address(value)


def _headers(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or len(value) > MOST_HEADERS:
        raise grammar.GrammarError("headers", f"Send at most {MOST_HEADERS} headers as {{name: value}}.")
    for name, text in value.items():
        grammar.header_name(name)
        if not isinstance(text, str) or not _HEADER_VALUE.fullmatch(text):
            raise grammar.GrammarError("header_value", "Use printable ASCII characters in header values.")
    return dict(value)


def trace_request(actor: Actor, question: Question, load_balancer: str | None = None) -> list[Traced]:
    """What each load balancer with routes of the host does; nothing for a host that is none of the actor's."""
    names = names_that_cover(question.bare_host)
    if not actor.is_operator and not _is_own(actor, names):
        return []
    rows = Route.objects.filter(hostname__name__in=names).exclude(hostname__verification="")
    if load_balancer:
        rows = rows.filter(load_balancer__name=load_balancer)
    routes = frozen_routes(rows, RoutePool.objects.filter(route__in=rows))
    fronts = LoadBalancer.objects.select_related("account").filter(pk__in=routes).order_by("name")
    return [_told(actor, question, front, routes[front.pk]) for front in fronts]


def _is_own(actor: Actor, names: tuple[str, ...]) -> bool:
    own = Hostname.objects.filter(account=actor.account, name__in=names, released_at=None)
    return own.exclude(verification="").exists()


def _told(actor: Actor, question: Question, row: LoadBalancer, routes: RoutesServed) -> Traced:
    front = with_access(frozen_front(row, routes), row) if question.client else frozen_front(row, routes)
    found = _without_others(actor, trace(front, question))
    listener = found.listener.label if found.listener else None
    passed = tuple(
        (each.route.label, each.code, each.why) for each in found.passed_over if _is_seen(actor, each.route)
    )[:MOST_PASSED_OVER]
    if found.winner is not None and not _is_seen(actor, found.winner):
        return Traced(row.name, listener, None, passed, (), None, "", None, None, (), (), NOTHING)
    labels = _labels(found)
    pools = tuple((labels.get(share.pool_id, share.pool_id), share.part) for share in found.pools)
    if found.winner is None and not actor.is_operator:
        pools = ()  # the default pool of a listener is the operator's
    route = (number_of(found.winner.id), found.winner.label) if found.winner else None
    rules = rules_of(front, found.winner) if found.winner else NO_RULES
    numbers = [number_of(share.pool_id) for share in found.pools]
    served = _served(row, numbers, labels, rules.overflow) if pools else ()
    times = times_of(rules, [share.pool_id for share in found.pools], labels) if pools else ()
    sentence = _sentence(actor, question.scheme, found, labels)
    mirror = labels.get(found.mirror_pool_id or "")
    outcome = (found.path, found.status, found.location)
    told = (*outcome, tuple(served), tuple(times), sentence, found.guards)
    return Traced(row.name, listener, route, passed, pools, mirror, *told)


def _without_others(actor: Actor, found: Trace) -> Trace:
    """The names of other accounts' lists are theirs."""
    lists = found.refusal.lists if found.refusal else ()
    own = actor.is_operator or all(each.startswith(f"{actor.account.name}/") for each in lists)
    return found if own else replace(found, refusal=None)


def _is_seen(actor: Actor, route: model.Route) -> bool:
    return actor.is_operator or route.account == actor.account.name


def _sentence(actor: Actor, scheme: str, found: Trace, labels: Mapping[str, str]) -> str:
    if found.winner is None and not actor.is_operator and not found.is_closed:
        return NOTHING
    outcome = f"{happens(found, labels)}."
    if found.listener:
        return f"It {outcome}"
    return f"This load balancer has no {scheme} listener, so the request never arrives. With a listener, it {outcome}"


def _labels(found: Trace) -> dict[str, str]:
    named = [share.pool_id for share in found.pools] + [each for each in (found.mirror_pool_id,) if each]
    numbers = [number_of(each) for each in named]
    rows = Pool.objects.filter(pk__in=numbers).values_list("pk", "account__name", "name")
    return {f"pool-{pk}": f"{account}/{name}" for pk, account, name in rows}


def _served(row: LoadBalancer, pools: list[int], labels: Mapping[str, str], said: RouteOverflow | None) -> list[Served]:
    """For each region of the load balancer: its own servers where some are ready, else the first region that has.

    `said` is what the route says of overflow.
    """
    backends = Backend.objects.filter(pool__in=pools, region__drained=False, capacity_scaler__gt=0)
    counted = {
        (pool, region): count
        for pool, region, count in backends.annotate(ready=usable_servers()).values_list(
            "pool_id", "region__name", "ready"
        )
    }
    chosen = {row.pk: row.overflow for row in Pool.objects.filter(pk__in=pools)}
    nearest, names = overflow_orders(), {f"rgn-{pk}": name for pk, name in Region.objects.values_list("pk", "name")}
    regions = sorted(set(row.fleets.values_list("region_id", "region__name")), key=lambda each: each[1])
    found = []
    for pk, region in regions:
        for pool in pools:
            order = [region, *_tried(chosen[pool], said, names, nearest.get(pk, []))]
            serving = next((name for name in order if counted.get((pool, name))), None)
            count = counted.get((pool, serving), 0) if serving else 0
            found.append(Served(region, labels.get(f"pool-{pool}", f"pool-{pool}"), serving, count))
    return found


def _tried(pool: Overflow, route: RouteOverflow | None, names: Mapping[str, str], nearest: list[str]) -> list[str]:
    """The regions that overflow tries: those that the pool allows, narrowed and ordered by the route."""
    allowed = open_to(pool.mode, pool.order, dict.fromkeys([*pool.order, *nearest]))
    if route is None:
        return allowed
    first = [names[each] for each in route.order or () if names.get(each) in allowed]
    return open_to(route.mode or OverflowMode.ANYWHERE, first, dict.fromkeys([*first, *allowed]))


def waits_for_verification(actor: Actor, question: Question) -> bool:
    """Whether routes of the host are kept but not served, because nobody verified the name yet."""
    names = names_that_cover(question.bare_host)
    return actor.visible(Route.objects.filter(hostname__name__in=names, hostname__verification="")).exists()


__all__ = ["Served", "Traced", "read_question", "trace_request", "waits_for_verification"]
