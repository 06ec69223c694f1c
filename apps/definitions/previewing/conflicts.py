"""While somebody writes a route: which other routes match the same requests, and who wins then.

The rules are those of the compiler (compiler/routing.py): an exact host before wildcards, in one host an exact path
before a prefix, a longer prefix before a shorter one, then patterns, then `/`; on one path methods, then more
conditions first, then the older route.
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
from apps.compiler.matching import names
from apps.compiler.matching.hosts import ANY, ending_of, example_of, is_wildcard, names_that_cover, position_of
from apps.compiler.model.shared import PathKind
from apps.definitions.models import Route
from apps.definitions.shapes.traffic.route import MATCH

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
        names.hostname_of_route(host)
        grammar.path(path)
    except grammar.GrammarError:
        return []
    owner = account or actor.account
    rows = _same_hosts(actor, str(host)).exclude(pk=exclude_id or 0)
    if balancer := spec.get("load_balancer"):
        rows = rows.filter(load_balancer__name=balancer)
    candidates = rows.only("name", "path", "path_kind", *MATCH, "hostname__name", "account__name")
    found = [conflict for row in candidates[:500] if (conflict := _compare(spec, str(host), str(path), row))]
    return [*_taken(actor, owner, str(host)), *found][:SHOWN]


def _same_hosts(actor: Actor, host: str) -> QuerySet[Route]:
    hosts = Q(hostname__name=host)
    if is_wildcard(host) and host != ANY:
        hosts |= Q(hostname__name__endswith=ending_of(host))
    hosts |= Q(hostname__name__in=names_that_cover(example_of(host)))
    rows = Route.objects.filter(hosts).select_related("hostname", "account")
    return actor.visible(rows).order_by("hostname__name", "path", "id")


def _taken(actor: Actor, owner: Account, host: str) -> list[RouteConflict]:
    """For operators alone: what others claim is not said to customers, whose routes wait for verification."""
    if not actor.is_operator or not is_kept_by_others(owner, host, verification=Hostname.Verification.OPERATOR):
        return []
    return [RouteConflict("taken", str(HostnameTaken(host)))]


def _conditions(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """The same as `match_of` of a stored route, of what may still be half-written."""
    headers = [(name.lower(), match, value) for name, match, value in _entries(found.get("headers"))]
    others = (tuple(sorted(_entries(found.get(field)))) for field in ("query", "cookies"))
    plain = (tuple(sorted(map(str, found.get(field) or ()))) for field in ("methods", "client_networks"))
    return *plain, tuple(sorted(headers)), *others, str(found.get("scheme") or "")


def _entries(conditions: Any) -> list[tuple[str, str, str]]:
    entries = [entry for entry in conditions or () if isinstance(entry, Mapping)]
    return [(str(e.get("name", "")), str(e.get("match", "equals")), str(e.get("value") or "")) for e in entries]


def _compare(spec: Mapping[str, Any], host: str, path: str, row: Route) -> RouteConflict | None:
    label = f"{row.account.name}/{row.name}"
    where = f"{row.hostname.name}{row.path}"
    if row.hostname.name != host:
        wide, narrow = sorted((host, row.hostname.name), key=position_of, reverse=True)
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
        if _conditions(spec) == _conditions({field: getattr(row, field) for field in MATCH}):
            return "identical", "matches exactly the same requests; change the path or the conditions."
        return "same_path", "has the same path; the route with more conditions takes precedence."
    if PathKind.REGEX in (kind, row.path_kind):
        return _beside_pattern(path, kind, row)
    return _beside_path(path, kind, row)


def _beside_path(path: str, kind: str, row: Route) -> tuple[str, str] | None:
    """Of an exact path and a prefix, or of two prefixes, the longer one takes its part."""
    if row.path == path:
        if row.path_kind == PathKind.EXACT:
            return "loses_part", f"takes the requests for exactly {path}."
        return "takes_part", f"no longer gets the requests for exactly {path}; this route takes them."
    if kind == PathKind.PREFIX and _below(row.path, path):
        return "loses_part", "takes the requests below its longer path."
    if row.path_kind == PathKind.PREFIX and _below(path, row.path):
        return "takes_part", f"no longer gets the requests for {path}; this route takes them."
    return None


def _beside_pattern(path: str, kind: str, row: Route) -> tuple[str, str] | None:
    """Patterns come after prefixes and before `/`, whatever they match; of two the older is asked first."""
    if kind == row.path_kind:
        return "same_path", "has a pattern too; with as many conditions the older route takes precedence."
    if (row.path, row.path_kind) != ("/", PathKind.PREFIX) and (path, kind) != ("/", PathKind.PREFIX):
        return None
    if kind == PathKind.REGEX:
        return "takes_part", "no longer gets the requests that match the pattern; this route takes them."
    return "loses_part", "takes the requests that match its pattern."


def _below(path: str, prefix: str) -> bool:
    return path.startswith(prefix.rstrip("/") + "/") and path != prefix
