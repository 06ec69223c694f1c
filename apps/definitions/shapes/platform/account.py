"""The shape of an Account: a tenant, and how much it may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.accounts.quota_bounds import DEFAULTS, bounds
from apps.definitions.shapes.base.shape import About, Grammar, Shape
from apps.definitions.shapes.base.words import Boolean, Title, one_of, whole

KIND = one_of("operator", "customer", sentence="Use operator or customer.")


def _most(name: str) -> Grammar:
    return whole(*bounds(name))


def _of(name: str, label: str, more: str = "") -> About:
    usual = f"Default: {DEFAULTS[name]:,}."
    return About(f"{more or f'{label}.'} {usual}", label, usual, absent_when_empty=True)


@dataclass(frozen=True, slots=True)
class Quotas(Shape):
    """How many of each an account may have; what is left out is as by default."""

    routes: Annotated[int | None, _most("routes"), _of("routes", "Routes")] = None
    policies: Annotated[int | None, _most("policies"), _of("policies", "Policies")] = None
    network_lists: Annotated[int | None, _most("network_lists"), _of("network_lists", "Network lists")] = None
    key_sets: Annotated[int | None, _most("key_sets"), _of("key_sets", "URLs of key sets (JWKS)")] = None
    pools: Annotated[int | None, _most("pools"), _of("pools", "Pools")] = None
    servers: Annotated[int | None, _most("servers"), _of("servers", "Servers", "Servers of all pools together.")] = None
    hostnames: Annotated[int | None, _most("hostnames"), _of("hostnames", "Hostnames")] = None
    certificates: Annotated[int | None, _most("certificates"), _of("certificates", "Certificates")] = None
    tokens: Annotated[int | None, _most("tokens"), _of("tokens", "Tokens")] = None
    people: Annotated[int | None, _most("people"), _of("people", "People")] = None
    webhooks: Annotated[int | None, _most("webhooks"), _of("webhooks", "Webhooks")] = None
    requests_per_minute: Annotated[
        int | None, _most("requests_per_minute"), _of("requests_per_minute", "API requests per minute")
    ] = None
    schedules: Annotated[int | None, _most("schedules"), _of("schedules", "Schedules")] = None
    triggers: Annotated[int | None, _most("triggers"), _of("triggers", "Triggers")] = None
    alert_rules: Annotated[int | None, _most("alert_rules"), _of("alert_rules", "Alert rules")] = None
    alert_channels: Annotated[int | None, _most("alert_channels"), _of("alert_channels", "Alert channels")] = None
    status_pages: Annotated[int | None, _most("status_pages"), _of("status_pages", "Status pages")] = None
    records: Annotated[int | None, _most("records"), _of("records", "Records")] = None
    objectives: Annotated[
        int | None, _most("objectives"), _of("objectives", "Objectives", "Objectives of pools and routes together.")
    ] = None
    static_ips: Annotated[int | None, _most("static_ips"), _of("static_ips", "Static IPs")] = None
    node_share_percent: Annotated[
        int | None,
        _most("node_share_percent"),
        _of(
            "node_share_percent",
            "Percent of a node's connections",
            "How much of what a node can have at once its pools get, all together.",
        ),
    ] = None
    node_rps: Annotated[
        int | None,
        _most("node_rps"),
        _of(
            "node_rps",
            "Requests/s (TCP: new connections/s) on a node",
            "How much a node accepts for all of its pools together.",
        ),
    ] = None
    log_megabytes: Annotated[
        int | None,
        _most("log_megabytes"),
        _of(
            "log_megabytes",
            "Megabytes of request lines",
            "How much the stored request lines may take; beyond it the oldest hours go.",
        ),
    ] = None
    capacity_tests: Annotated[int | None, _most("capacity_tests"), _of("capacity_tests", "Capacity tests")] = None
    test_runs_at_once: Annotated[
        int | None, _most("test_runs_at_once"), _of("test_runs_at_once", "Capacity tests at once")
    ] = None
    test_rate: Annotated[int | None, _most("test_rate"), _of("test_rate", "Requests/s of a capacity test")] = None
    test_connections: Annotated[
        int | None, _most("test_connections"), _of("test_connections", "Connections of a capacity test")
    ] = None
    test_seconds: Annotated[int | None, _most("test_seconds"), _of("test_seconds", "Seconds of a capacity test")] = None


@dataclass(frozen=True, slots=True)
class AccountSpec(Shape):
    """A tenant; `quotas` hold what differs from the defaults."""

    title: Annotated[Title, About("The name shown on pages.", "Title", "The name shown on pages.", "Acme")]
    kind: Annotated[str, KIND, About("There is one operator; its account runs the platform.")] = "customer"
    quotas: Annotated[Quotas | None, About("Default: unchanged.", stays={})] = None
    suspended: Annotated[
        Boolean | None, About("Its members and tokens have no access; its traffic is not affected.", stays=False)
    ] = None
