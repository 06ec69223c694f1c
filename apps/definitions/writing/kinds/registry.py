"""Inside a write: every kind of object, in the order in which they name each other."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant
from apps.definitions import selectors
from apps.definitions.alerting import status_pages, storing
from apps.definitions.issuing import storing as certificates
from apps.definitions.models import (
    AlertChannel,
    AlertRule,
    CapacityTest,
    Certificate,
    CertificateAuthority,
    LoadBalancer,
    NetworkList,
    Policy,
    Pool,
    Record,
    Route,
    Schedule,
    StatusPage,
    Zone,
)
from apps.definitions.writing.kinds import (
    capacity_tests,
    clouds,
    grants,
    load_balancers,
    policies,
    routes,
    schedules,
    static_ips,
    topology,
    traffic,
    zones,
)
from apps.definitions.writing.kinds.contract import Kind
from apps.definitions.writing.rules import emptying
from apps.definitions.writing.rules.field_owners import keep_measured
from apps.definitions.writing.rules.passwords import brings_secrets
from apps.fleet import selectors as fleet
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Node, Region, Stack, StaticIP


def _accounts(_actor: Actor) -> QuerySet[Account]:
    return Account.objects.all()


def _certificates(actor: Actor) -> QuerySet[Certificate]:
    return selectors.certificates(actor).defer(None)  # with the key, which a new chain must fit


def _certificate_authorities(actor: Actor) -> QuerySet[CertificateAuthority]:
    return selectors.certificate_authorities(actor).defer(None)  # with its keys, which stay


def _alert_channels(actor: Actor) -> QuerySet[AlertChannel]:
    return selectors.alert_channels(actor).defer(None)  # with the secret, which a new one is compared with


# Nothing refers to a kind further down.
KINDS: dict[str, Kind] = {
    "Account": Kind(
        Account, _accounts, topology.store_account, "accounts", platform=True, audit_account=lambda row, _: row
    ),
    "Region": Kind(Region, fleet.regions, topology.store_region, "regions", platform=True),
    "Fleet": Kind(Fleet, fleet.fleets, topology.store_fleet, "fleets", platform=True),
    "Node": Kind(Node, fleet.nodes, topology.store_node, "nodes", platform=True, before_delete=topology.revoke_node),
    "CloudAccount": Kind(
        CloudAccount, fleet.cloud_accounts, clouds.store_cloud_account, "cloud-accounts", platform=True
    ),
    "Stack": Kind(
        Stack, fleet.stacks, clouds.store_stack, "stacks", platform=True, before_delete=clouds.reject_forgetting
    ),
    "AddressPool": Kind(
        AddressPool, fleet.address_pools, static_ips.store_address_pool, "address-pools", platform=True
    ),
    "StaticIP": Kind(
        *(StaticIP, fleet.static_ips, static_ips.store_static_ip, "static-ips"),
        platform=True,
        after_save=static_ips.with_allotted,
        before_delete=static_ips.reject_protected,
    ),
    "Grant": Kind(
        *(Grant, selectors.grants, grants.store_grant, "grants"),
        platform=True,
        before_delete=grants.defer_loss,
        audit_account=lambda row, _: row.account,
    ),
    "CertificateAuthority": Kind(
        *(CertificateAuthority, _certificate_authorities, certificates.store_authority, "certificate-authorities"),
        platform=True,
        brings_secrets=certificates.brings_hmac_key,
    ),
    "Certificate": Kind(
        Certificate,
        _certificates,
        certificates.store_certificate,
        "certificates",
        before_delete=certificates.end_order,
    ),
    "Pool": Kind(
        *(Pool, selectors.pools, traffic.store_pool, "pools"),
        wanted=keep_measured,
        after_save=emptying.note_servers,
    ),
    "NetworkList": Kind(NetworkList, selectors.network_lists, policies.store_network_list, "network-lists"),
    "LoadBalancer": Kind(
        *(LoadBalancer, selectors.load_balancers, load_balancers.store_load_balancer, "load-balancers"),
        for_operators=True,
        after_save=emptying.note_listeners,
    ),
    "Policy": Kind(Policy, selectors.policies, policies.store_policy, "policies", brings_secrets=brings_secrets),
    "Route": Kind(
        Route,
        selectors.routes,
        routes.store_route,
        "routes",
        before_delete=routes.leave_hostname,
        brings_secrets=brings_secrets,
    ),
    "Zone": Kind(
        *(Zone, selectors.zones, zones.store_zone, "zones"), for_operators=True, before_delete=zones.reject_forgetting
    ),
    "Record": Kind(Record, selectors.records, zones.store_record, "records", before_delete=zones.lock_zone_of),
    "CapacityTest": Kind(CapacityTest, selectors.capacity_tests, capacity_tests.store_capacity_test, "capacity-tests"),
    # A schedule keeps the change that it holds as it was sent.
    "Schedule": Kind(
        Schedule, selectors.schedules, schedules.store_schedule, "schedules", comparable=lambda after, _: after
    ),
    "AlertRule": Kind(AlertRule, selectors.alert_rules, storing.store_alert_rule, "alert-rules"),
    "AlertChannel": Kind(
        *(AlertChannel, _alert_channels, storing.store_alert_channel, "alert-channels"),
        brings_secrets=storing.brings_secret,
    ),
    "StatusPage": Kind(StatusPage, selectors.status_pages, status_pages.store_status_page, "status-pages"),
}

# Kinds whose names are unique everywhere: the envelope and the URL need no account.
PLATFORM = frozenset(kind for kind, entry in KINDS.items() if entry.platform)
