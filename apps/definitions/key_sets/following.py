"""Who follows which key set, and what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from apps.definitions.affected_targets import load_balancers_of_policy
from apps.definitions.models import KeySet, Policy, Route
from apps.definitions.shapes.base.words import read_instant

FETCH_TASK = "apps.definitions.tasks.fetch_key_sets"
FIELDS = ("url", "fetched_at", "tried_at", "next_at", "error", "ignored")
Followers = tuple[QuerySet[Policy], QuerySet[Route]]


def url_of(rules: Mapping[str, Any] | None) -> str:
    """The URL of the key set that stored rules name, empty for none."""
    return str(((rules or {}).get("jwt") or {}).get("jwks_url") or "")


def followers(row: KeySet) -> Followers:
    """Policies and routes of its account that name its URL."""
    named = {"account": row.account_id, "rules__jwt__jwks_url": row.url}
    return Policy.objects.filter(**named), Route.objects.filter(**named)


def load_balancers_following(row: KeySet) -> list[int]:
    """Load balancers (ids) with routes that need its keys."""
    policies, routes = followers(row)
    found = set(routes.values_list("load_balancer_id", flat=True))
    return sorted(found.union(*(load_balancers_of_policy(each) for each in policies)))


def facts_of(named: Collection[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """What is known of key sets by account (its name) and URL, as the API and pages show it; no PEM text."""
    wanted = set(named)
    rows = KeySet.objects.filter(url__in={url for _, url in wanted}).select_related("account")
    keys = {(row.account.name, row.url): row for row in rows}
    return {each: _facts(keys[each]) for each in wanted if each in keys}


def _facts(row: KeySet) -> dict[str, Any]:
    keys = [
        {"algorithm": key["algorithm"], "kid": key["kid"], "gone_at": _moment(key.get("gone_at"))}
        for key in sorted(row.keys, key=lambda key: (key.get("gone_at") or "", key["kid"]))
    ]
    return {name: getattr(row, name) for name in FIELDS} | {"keys": keys}


def _moment(text: str | None) -> datetime | None:
    return read_instant(text) if text else None


def key_set_of(row: Policy | Route) -> dict[str, Any] | None:
    """The same for one policy or route; None where its own rules name no URL."""
    named = (row.account.name, url_of(row.rules))
    return facts_of([named]).get(named) if named[1] else None
