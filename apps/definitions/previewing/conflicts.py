"""While somebody writes a route: which other routes match the same requests, and who wins then.

The rules are those of the compiler: an exact host before a wildcard, in one host an exact path before a prefix, a
longer prefix before a shorter one, on one path more header conditions first, then methods, then the older route.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.hostnames.claims import HostnameTaken, is_kept_by_others
from apps.accounts.models import Account, Hostname
from apps.compiler import grammar
from apps.compiler.model.shared import PathKind
from apps.definitions.models import Route

SHOWN = 20


@dataclass(frozen=True, slots=True)
class RouteConflict:
    """One sentence about another route. `kind`: identical and taken refuse the route; the others inform.

    identical, taken, same_path, loses_part (the other takes some requests), takes_part (this one does), wildcard.
    `route_id` and `label` are None and empty where there is no other route to show.
    """

    kind: str
    sentence: str
    route_id: int | None = None
    label: str = ""

    @property
    def refuses(self) -> bool:
        """Whether saving will be refused."""
        return self.kind in ("identical", "taken")


def route_conflicts(
    actor: Actor, spec: Mapping[str, Any], *, account: Account | None = None, exclude_id: int | None = None
) -> list[RouteConflict]:
    """Who else matches, for a specification that may still be half-written; three queries at most.

    `account` is the route's owner (the actor's own when None), `exclude_id` the route being edited.
    """
    host, path = spec.get("hostname"), spec.get("path") or "/"
    try:
        grammar.hostname(host)
        grammar.path(path)
    except grammar.GrammarError:
        return []
    owner = account or actor.account
    rows = _same_hosts(actor, str(host)).exclude(pk=exclude_id or 0)
    if balancer := spec.get("load_balancer"):
        rows = rows.filter(load_balancer__name=balancer)
    candidates = rows.only(
        "name", "path", "path_kind", "methods", "headers", "scheme", "hostname__name", "account__name"
    )
    found = [conflict for row in candidates[:500] if (conflict := _compare(spec, str(host), str(path), row))]
    return [*_taken(actor, owner, str(host)), *found][:SHOWN]


def _same_hosts(actor: Actor, host: str) -> QuerySet[Route]:
    hosts = Q(hostname__name=host)
    if host.startswith("*."):
        hosts |= Q(hostname__name__endswith=host[1:])
    else:
        hosts |= Q(hostname__name=f"*.{host.partition('.')[2]}")
    rows = Route.objects.filter(hosts).select_related("hostname", "account")
    return actor.visible(rows).order_by("hostname__name", "path", "id")


def _taken(actor: Actor, owner: Account, host: str) -> list[RouteConflict]:
    """For operators alone: what others claim is not said to customers, whose routes wait for verification."""
    if not actor.is_operator or not is_kept_by_others(owner, host, verification=Hostname.Verification.OPERATOR):
        return []
    return [RouteConflict("taken", str(HostnameTaken(host)))]


def _conditions(methods: Any, headers: Any, scheme: Any) -> tuple[Any, ...]:
    entries = [entry for entry in headers or () if isinstance(entry, Mapping)]
    named = ((str(e.get("name", "")).lower(), str(e.get("match", "equals")), str(e.get("value", ""))) for e in entries)
    return tuple(sorted(map(str, methods or ()))), tuple(sorted(named)), str(scheme or "")


def _compare(spec: Mapping[str, Any], host: str, path: str, row: Route) -> RouteConflict | None:
    label = f"{row.account.name}/{row.name}"
    where = f"{row.hostname.name}{row.path}"
    if row.hostname.name != host:
        wide, narrow = sorted((host, row.hostname.name), key=lambda name: not name.startswith("*."))
        sentence = f"{label} ({where}): {narrow} has its own routes, which take precedence over those of {wide}."
        return RouteConflict("wildcard", sentence, row.pk, label)
    kind = str(spec.get("path_kind") or PathKind.PREFIX)
    sentence_kind = _on_one_host(spec, path, kind, row)
    if sentence_kind is None:
        return None
    word, sentence = sentence_kind
    return RouteConflict(word, f"{label} ({where}) {sentence}", row.pk, label)


def _on_one_host(spec: Mapping[str, Any], path: str, kind: str, row: Route) -> tuple[str, str] | None:
    if row.scheme and spec.get("scheme") and row.scheme != spec["scheme"]:
        return None  # they never meet
    if row.path == path and row.path_kind == kind:
        mine = _conditions(spec.get("methods"), spec.get("headers"), spec.get("scheme"))
        other = _conditions(row.methods, row.headers, row.scheme)
        if mine == other:
            return "identical", "matches exactly the same requests; change the path or the conditions."
        return "same_path", "has the same path; the route with more conditions takes precedence."
    if row.path == path:
        if row.path_kind == PathKind.EXACT:
            return "loses_part", f"takes the requests for exactly {path}."
        return "takes_part", f"no longer gets the requests for exactly {path}; this route takes them."
    if kind == PathKind.PREFIX and _below(row.path, path):
        return "loses_part", "takes the requests below its longer path."
    if row.path_kind == PathKind.PREFIX and _below(path, row.path):
        return "takes_part", f"no longer gets the requests for {path}; this route takes them."
    return None


def _below(path: str, prefix: str) -> bool:
    return path.startswith(prefix.rstrip("/") + "/") and path != prefix
