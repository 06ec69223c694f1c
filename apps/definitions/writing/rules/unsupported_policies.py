"""Inside a write: what a policy newly asks of clouds that cannot do it is refused; what it asked before may stay.

Asked are the load balancers on which the policy holds, not its routes: a hundred thousand of them cost two queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from apps.accounts.actors import Actor
from apps.compiler.policies import BLOCKS
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import Policy, Route, RoutePolicy
from apps.definitions.previewing.capabilities import (
    MOST_NAMED,
    Reach,
    Standing,
    clouds_of_policy,
    followers_of,
    rows_of,
    told_of,
)
from apps.definitions.reading.describing import Document
from apps.definitions.writing.change_set import ChangeSet

MAX_ERRORS = 100


def reject_unsupported_policies(changes: ChangeSet) -> None:
    """In the end: Invalid when a policy that was saved says more, or holds for more, than its clouds can do."""
    saved = changes.deferred.saved.get("Policy", {})
    if not saved:
        return
    rows = Policy.objects.filter(pk__in=list(saved)).select_related("account").prefetch_related("load_balancers")
    found = [
        field_error
        for row in rows.order_by("pk")
        for field_error in _Saved(
            changes.actor, row, changes.deferred.before["Policy"].get(row.pk), saved[row.pk]
        ).errors()
    ]
    if found:
        raise Invalid(found[:MAX_ERRORS])


def blocks_of(rules: Mapping[str, Any] | None) -> frozenset[str]:
    """The blocks of stored rules that ask a target for something; a page of maintenance only while it is shown."""
    return frozenset(block for block in BLOCKS if is_asked(rules, block))


def is_asked(rules: Mapping[str, Any] | None, field: str) -> bool:
    """The same of one block, or of a field in it (`retries.attempts`)."""
    said: Any = rules
    for name in field.split("."):
        said = (said or {}).get(name)
    return said is not None and (field != "maintenance" or bool(said.get("enabled")))


def asks(field: str, policy: str = "") -> Q:
    """Rows whose rules have a block, or a field in it; `policy` leads from a row to the policies that it means."""
    block, _, name = field.rpartition(".")
    return Q(**{f"{policy}rules{f'__{block}' if block else ''}__has_key": name})


def asked_before(route: Route, field: str, before: Document | None) -> bool:
    """Whether a route asked for a block or field before this write, there where it is: by itself or by a policy.

    What a policy of it says only now is refused to the policy.
    """
    if before is None or before["load_balancer"] != route.load_balancer.name:
        return False
    if is_asked(before.get("rules"), field):
        return True
    named, host = before["policies"], before["hostname"]
    return any(_is_named(each, route, named) or _is_default(each, route, host) for each in _saying(route, field))


def policy_behind(route: Route, block: str) -> tuple[str, bool] | None:
    """The name of the policy by which a route asks for a block, and whether it names it; None where it says it."""
    if is_asked(route.rules, block):
        return None
    saying, named = _saying(route, block), {each.pk for each in route.policies}
    found = next((each for each in saying if each.pk in named), None)
    if found is not None:
        return found.name, True
    found = next((each for each in saying if _is_default(each, route, route.hostname.name)), None)
    return (found.name, False) if found is not None else None


def _saying(route: Route, field: str) -> list[Policy]:
    """The policies that could hold for a route and ask for a block or field."""
    could = Q(account=route.account_id) | Q(load_balancers=route.load_balancer_id)
    could |= Q(pk__in=RoutePolicy.objects.filter(route=route).values("policy"))
    rows = Policy.objects.filter(could, asks(field)).select_related("account")
    rows = rows.prefetch_related("load_balancers").distinct().order_by("pk")
    return [row for row in rows if is_asked(row.rules, field)]


def _is_named(policy: Policy, route: Route, names: Collection[str]) -> bool:
    own = policy.account_id == route.account_id and policy.name in names
    return own or f"{policy.account.name}/{policy.name}" in names


def _is_default(policy: Policy, route: Route, hostname: str) -> bool:
    own = policy.account_id == route.account_id and (policy.whole_account or hostname in policy.hostnames)
    return own or any(each.pk == route.load_balancer_id for each in policy.load_balancers.all())


def _reach(default_for: Mapping[str, Any] | None) -> Reach:
    said = default_for or {}
    names = (frozenset(said.get(field) or ()) for field in ("hostnames", "load_balancers"))
    return Reach(bool(said.get("account")), *names)


@dataclass(frozen=True, slots=True)
class _Saved:
    """A policy with what it was before."""

    actor: Actor
    row: Policy
    before: Document | None
    pointer: str

    def errors(self) -> Iterator[FieldError]:
        """What is refused of it."""
        asked, before = blocks_of(self.row.rules), blocks_of((self.before or {}).get("rules"))
        reach = Reach(
            self.row.whole_account,
            frozenset(self.row.hostnames),
            frozenset(front.name for front in self.row.load_balancers.all()),
        )
        if asked - before:
            yield from self._refused(asked - before, self.row, reach)
        former = _reach((self.before or {}).get("default_for"))
        grown = Reach(
            reach.account and not former.account,
            reach.hostnames - former.hostnames,
            reach.load_balancers - former.load_balancers,
        )
        if asked & before and any(grown):
            there = clouds_of_policy(self.row, self.row.account.name, former)
            yield from self._refused(asked & before, None, grown, there)

    def _refused(
        self, blocks: frozenset[str], policy: Policy | None, reach: Reach, there: tuple[Standing, ...] = ()
    ) -> Iterator[FieldError]:
        """What clouds refuse of these blocks; `there` it was before."""
        clouds = clouds_of_policy(policy, self.row.account.name, reach)
        standings = [each for each in clouds if each not in there]
        for block in filter(blocks.__contains__, BLOCKS if standings else ()):
            told = told_of(rows_of("Policy", f"rules.{block}")[0], standings)
            if told.refused:
                where = f"rules/{block}" if policy else "default_for"
                detail = f"{told.refused} {told.remedy} {self._named(block, policy, reach, standings)}"
                yield FieldError(f"{self.pointer}/spec/{where}", "policy_target", detail)

    def _named(self, block: str, policy: Policy | None, reach: Reach, standings: list[Standing]) -> str:
        """Which routes it is about: of others than operators, those of their own account."""
        following = followers_of(policy, self.row.account.name, reach)
        routes = Route.objects.filter(following, load_balancer__name__in={each.load_balancer for each in standings})
        if not self.actor.is_operator:
            routes = routes.filter(account=self.actor.account)
        found = routes.order_by("pk").values_list("account__name", "name").distinct()[: MOST_NAMED + 1]
        names = [f"{account}/{name}" for account, name in found]
        if not names:
            return f"{block} would hold for each route there."
        more = " and others" if len(names) > MOST_NAMED else ""
        plural = "s" if len(names) > 1 else ""
        return f"{block} would hold for route{plural} {', '.join(names[:MOST_NAMED])}{more}."
