"""What each URL does with each method; the document and the middleware both read it.

A query parameter that does not stand here is refused by the middleware, so what is not written down does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from apps.api.v1.schemas import incidents, writing
from apps.api.v1.schemas.client_bans import OPERATIONS as OF_CLIENT_BANS
from apps.api.v1.schemas.derived import serializer_of
from apps.api.v1.schemas.envelopes import Conditioned, Generation
from apps.api.v1.schemas.nouns import (
    capacity,
    health,
    people,
    plans,
    platform,
    pools,
    progress,
    tracing,
    traffic,
    watching,
)
from apps.api.v1.schemas.nouns.adopting import OPERATIONS as OF_ADOPTING
from apps.api.v1.schemas.operations.building import (
    MANAGED,
    READ_REFUSALS,
    Operation,
    Schema,
    Table,
    at_once,
    change,
    create,
    detail,
    keeping,
    listing,
    managed,
    noun,
    of_one,
    read,
    remove,
    write,
    written,
)
from apps.api.v1.schemas.operations.canaries import OPERATIONS as OF_CANARIES
from apps.api.v1.schemas.operations.clouds import OPERATIONS as OF_CLOUDS
from apps.api.v1.schemas.operations.enrolment import OPERATIONS as OF_ENROLMENT
from apps.api.v1.schemas.operations.importing import OPERATIONS as OF_IMPORTING
from apps.api.v1.schemas.operations.logs import OPERATIONS as OF_LOGS
from apps.api.v1.schemas.operations.replacements import OPERATIONS as OF_REPLACEMENTS
from apps.api.v1.schemas.operations.schedules import OPERATIONS as OF_SCHEDULES
from apps.api.v1.schemas.publications import OPERATIONS as OF_PUBLICATIONS
from apps.definitions.server_sources.heartbeats import HeartbeatSpec

ROUTE = noun("Route", "a route", "routes", base=Conditioned, facts=traffic.RouteFacts)
POOL = noun("Pool", "a pool", "pools", base=Conditioned)
CAPACITY_TEST = noun("CapacityTest", "a capacity test", "capacity tests")
NETWORK_LIST = noun(
    "NetworkList", "a network list", "network lists", about="Networks that policies and listeners let in or keep out."
)
POLICY = noun("Policy", "a policy", "policies", about="Settings that many routes share.", facts=traffic.PolicyFacts)
AUTHORITY = noun("CertificateAuthority", "a certificate authority", "certificate authorities")
CERTIFICATE = noun(
    "Certificate",
    "a certificate",
    "certificates",
    about="A certificate, with what its chain says.",
    base=Conditioned,
    facts=traffic.CertificateFacts,
)
BALANCER = noun("LoadBalancer", "a load balancer", "load balancers")
ALERT_RULE = noun(
    "AlertRule",
    "an alert rule",
    "alert rules",
    about="What makes an alert; one by the name of a built-in rule takes its place.",
)
ALERT_CHANNEL = noun(
    "AlertChannel",
    "an alert channel",
    "alert channels",
    about="Whom alerts are told; its secret is never shown.",
)
REGION = noun("Region", "a region", "regions", facts=platform.RegionFacts)
STATUS_PAGE = noun("StatusPage", "a status page", "status pages")
BY_NAME = ("name", "account")
ENTRIES = (
    *("q", "actor", "token", "account", "kind", "action-word", "object"),
    *("object_id", "request_id", "since", "until"),
)
REPLAYED = ("Idempotency-Replayed",)
DRAIN = write("Drain a region", {200: REGION.item}, None, *MANAGED)
BATCH = replace(write("", {200: writing.BatchDone}, writing.Batch, "atomic", *MANAGED, "confirm"), tells=REPLAYED)


def _run(summary: str, status: int, sent: Schema | None = None) -> Operation:
    """Something that is done to a run or begins one."""
    found = of_one(summary, {status: capacity.CapacityRun}, sent)
    return replace(found, tells=("Location", *REPLAYED))


def _beat(summary: str, shown: Mapping[int, Schema | None]) -> Operation:
    """What a server says of itself: it has no reason to give."""
    found = of_one(summary, shown, serializer_of(HeartbeatSpec))
    return replace(found, tells=REPLAYED)


OPERATIONS: Table = {
    ("openapi", "GET"): Operation(
        summary="Read this document", shown={200: writing.OpenAPI, 304: None}, refuses=(), public=True
    ),
    **written("routes", ROUTE, "q", "hostname", "account", "pool", "load_balancer", "action"),
    **keeping(written("pools", POOL, "name", "account")),
    **written("accounts", noun("Account", "an account", "accounts"), "name"),
    **written("regions", REGION, "name"),
    **written("fleets", noun("Fleet", "a fleet", "fleets", facts=Generation), "name", "region"),
    **written("nodes", noun("Node", "a node", "nodes"), "name", "fleet", "tag"),
    **OF_ADOPTING,
    **OF_CLIENT_BANS,
    **OF_PUBLICATIONS,
    **OF_CLOUDS,
    **OF_ENROLMENT,
    **OF_IMPORTING,
    **written("grants", noun("Grant", "a grant", "grants"), "name"),
    **written("network-lists", NETWORK_LIST, *BY_NAME),
    **written("policies", POLICY, *BY_NAME),
    **written("certificate-authorities", AUTHORITY, "name"),
    **written("certificates", CERTIFICATE, *BY_NAME),
    **written("capacity-tests", CAPACITY_TEST, "name", "account", "pool", "region"),
    ("capacity-tests-run", "POST"): _run("Request a run of a capacity test", 202, capacity.CreateRun),
    ("capacity-tests-checks", "GET"): detail(
        capacity.Checks, "the pre-flight checks of a capacity test", version=False
    ),
    ("capacity-runs-list", "GET"): listing(
        capacity.CapacityRun, "runs of capacity tests", "account", "pool", "region", "test"
    ),
    ("capacity-runs-detail", "GET"): detail(
        capacity.CapacityRun, "a run; `wait` returns when it ends", "wait", version=False
    ),
    ("capacity-runs-steps", "GET"): replace(
        listing(capacity.CapacityStep, "the steps of a run"), refuses=(*READ_REFUSALS, 404)
    ),
    ("capacity-runs-seconds", "GET"): replace(
        listing(capacity.CapacitySecond, "the seconds of a run"), refuses=(*READ_REFUSALS, 404)
    ),
    ("capacity-runs-stop", "POST"): _run("Stop a run; everyone who can see it may", 202),
    ("capacity-runs-approve", "POST"): _run("Approve a run", 202),
    ("capacity-runs-set-limit", "POST"): managed(_run("Set the limit that a run measured", 200, capacity.SetLimit)),
    **read("capacity-comparisons", capacity.Comparison, "a comparison", "comparisons", version=False),
    ("capacity-comparisons-list", "POST"): replace(
        at_once(
            write(
                "Compare two capacity tests with alternating runs",
                {202: capacity.Comparison},
                capacity.CreateComparison,
            )
        ),
        tells=("Location", *REPLAYED),
    ),
    ("sizing", "GET"): detail(
        capacity.Sizing,
        "the number of servers that a rate needs",
        *("pool", "rate", "n_minus_1", "cost_per_server"),
        version=False,
    ),
    **read("blackouts", capacity.Blackout, "a blackout", "blackouts", version=False),
    ("blackouts-list", "POST"): at_once(create(capacity.Blackout, capacity.CreateBlackout, "a blackout")),
    ("blackouts-detail", "DELETE"): of_one("End a blackout", {204: None}),
    **read("backends", pools.Backend, "a backend", "backends", "account", "pool", "region"),
    **read("servers", pools.Server, "a server", "servers", *BY_NAME, "pool", "region"),
    **written("load-balancers", BALANCER, "name"),
    **OF_LOGS,
    ("pools-own-server", "PUT"): _beat("Register a server, or renew its lease", {200: pools.Heartbeat}),
    ("pools-own-server", "DELETE"): replace(_beat("End the lease of a server", {204: None}), sent=None),
    **OF_REPLACEMENTS,
    **OF_CANARIES,
    **OF_SCHEDULES,
    **read("listeners", traffic.Listener, "a listener", "listeners", "name", "load_balancer", version=False),
    **read("revisions", progress.Revision, "a revision", "revisions", version=False),
    **read(
        "audit-entries",
        watching.AuditEntry,
        "an entry of the audit log",
        "entries of the audit log",
        *ENTRIES,
        version=False,
    ),
    **read("hostnames", people.Hostname, "a hostname", "hostnames", *BY_NAME),
    ("hostnames-list", "POST"): replace(
        create(people.Hostname, people.HostnameClaim, "a claim of a hostname", {200: people.Hostname}),
        planned=people.ClaimPlan,
    ),
    ("hostnames-detail", "DELETE"): replace(remove("a hostname (release it)"), planned=people.ReleasePlan),
    ("hostnames-check", "POST"): of_one("Check the verification of a hostname now", {200: people.Hostname}),
    ("hostnames-verification", "POST"): of_one(
        "Verify a hostname manually, as an operator", {200: people.Hostname}, people.Word
    ),
    ("hostnames-cooldown", "DELETE"): of_one("End the cooldown of a released hostname", {204: None}),
    **read("memberships", people.Membership, "a membership", "memberships", "account", "person"),
    ("memberships-detail", "PATCH"): at_once(
        change("Change the role of a member", {200: people.Membership}, people.RoleChange)
    ),
    ("memberships-detail", "DELETE"): at_once(remove("a membership")),
    **read("invitations", people.Invitation, "an open invitation", "open invitations", "account"),
    ("invitations-list", "POST"): at_once(create(people.NewInvitation, people.CreateInvitation, "an invitation")),
    ("invitations-detail", "DELETE"): at_once(remove("an invitation (revoke it)")),
    **read("tokens", people.Token, "a token", "tokens", *BY_NAME),
    ("tokens-list", "POST"): at_once(create(people.NewToken, people.CreateToken, "a token")),
    ("tokens-detail", "DELETE"): at_once(remove("a token (revoke it)")),
    **written("alert-rules", ALERT_RULE, *BY_NAME),
    **written("alert-channels", ALERT_CHANNEL, *BY_NAME),
    **written("status-pages", STATUS_PAGE, *BY_NAME),
    **read("incidents", incidents.Incident, "an incident", "incidents", "account", version=False),
    ("incidents-list", "POST"): at_once(create(incidents.Incident, incidents.CreateIncident, "an incident")),
    ("incidents-detail", "DELETE"): of_one("Delete an incident", {204: None}),
    ("incidents-updates", "POST"): of_one("Write an update", {201: incidents.Incident}, incidents.WriteUpdate),
    ("alert-channels-test", "POST"): of_one("Send a test message", {202: watching.AlertMessage}),
    ("alert-channels-messages", "GET"): replace(
        listing(watching.AlertMessage, "the messages of a channel", "state-word-message"),
        refuses=(*READ_REFUSALS, 404),
    ),
    **read("alerts", watching.Alert, "an alert", "alerts", "account", "state-word-alert", version=False),
    ("alerts-acknowledge", "POST"): of_one("Acknowledge an alert", {200: watching.Alert}),
    **read("silences", watching.Silence, "a silence", "silences that have not ended", "account", version=False),
    ("silences-list", "POST"): at_once(create(watching.Silence, watching.CreateSilence, "a silence")),
    ("silences-detail", "DELETE"): replace(of_one("End a silence", {204: None})),
    **read("webhooks", watching.Webhook, "a webhook", "webhooks", *BY_NAME),
    ("webhooks-list", "POST"): at_once(create(watching.WebhookSecret, watching.WebhookEnvelope, "a webhook")),
    ("webhooks-detail", "PUT"): at_once(
        change("Replace a webhook", {200: watching.Webhook}, watching.WebhookReplacement)
    ),
    ("webhooks-detail", "PATCH"): at_once(change("Change a webhook", {200: watching.Webhook}, watching.WebhookPatch)),
    ("webhooks-detail", "DELETE"): at_once(remove("a webhook and its delivery log")),
    ("webhooks-rotate", "POST"): at_once(
        change("Rotate the secret; the previous one also signs for a day", {200: watching.WebhookSecret}, None)
    ),
    ("webhooks-test", "POST"): of_one("Send a test event", {202: watching.Delivery}),
    ("webhooks-deliveries", "GET"): replace(
        listing(watching.Delivery, "the deliveries of a webhook", "state"), refuses=(*READ_REFUSALS, 404)
    ),
    ("webhooks-delivery", "GET"): detail(watching.Delivery, "a delivery with its attempts", version=False),
    ("webhooks-redeliver", "POST"): of_one("Send an event again with the same ID", {202: watching.Delivery}),
    ("servers-detail", "PATCH"): change(
        "Change the administrative state or weight of a server", {200: pools.Server}, pools.ServerChange, *MANAGED
    ),
    ("pools-limit", "GET"): detail(pools.MeasuredBackend, "the limit of a pool in a region"),
    ("pools-limit", "PATCH"): change(
        "Change the limit of a pool in a region",
        {200: pools.MeasuredBackend},
        pools.LimitChange,
        "refuse_overload",
        *MANAGED,
        "take_over",
    ),
    ("network-lists-ban", "POST"): replace(
        DRAIN,
        summary="Put a network into a list, or replace its entry",
        shown={200: NETWORK_LIST.item},
        sent=traffic.Ban,
        refuses=(*DRAIN.refuses, 404),
    ),
    ("network-lists-lift", "POST"): replace(
        DRAIN,
        summary="Take a network out of a list",
        shown={200: NETWORK_LIST.item},
        sent=traffic.LiftedBan,
        refuses=(*DRAIN.refuses, 404),
    ),
    ("policies-fetch-key-set", "POST"): of_one("Fetch the key set of a policy now", {200: traffic.KeySet}),
    ("routes-fetch-key-set", "POST"): of_one("Fetch the key set of a route now", {200: traffic.KeySet}),
    ("regions-drain", "POST"): replace(DRAIN, refuses=(*DRAIN.refuses, 404)),
    ("regions-undrain", "POST"): replace(DRAIN, summary="Resume traffic in a region", refuses=(*DRAIN.refuses, 404)),
    ("regions-latency", "PUT"): replace(
        DRAIN,
        summary="Set the round-trip time between two regions",
        sent=pools.LatencyChange,
        refuses=(*DRAIN.refuses, 404),
    ),
    ("overflow", "GET"): replace(
        detail(progress.FlowAnswer, "the traffic flow of all pools", "at", version=False), refuses=READ_REFUSALS
    ),
    ("pools-overflow", "GET"): detail(progress.FlowAnswer, "the traffic flow of a pool", "at", version=False),
    ("pools-named-overflow", "GET"): detail(
        progress.FlowAnswer, "the traffic flow of a pool by its name", "at", version=False
    ),
    ("pools-health", "GET"): detail(health.PoolHealth, "the health of a pool", version=False),
    ("pools-named-health", "GET"): detail(health.PoolHealth, "the health of a pool by its name", version=False),
    ("pools-objective", "GET"): detail(health.ObjectiveStanding, "how a pool stands to its objective", version=False),
    ("routes-objective", "GET"): detail(health.ObjectiveStanding, "how a route stands to its objective", version=False),
    ("fleets-health", "GET"): detail(health.FleetHealth, "the health of a fleet's nodes", version=False),
    ("nodes-health", "GET"): detail(health.NodeHealth, "the health of a node", version=False),
    ("consoles-health", "GET"): detail(
        health.ConsolesHealth, "the health of the control plane's machines", version=False
    ),
    ("overflow-what-if", "POST"): Operation(
        summary="Simulate a change of traffic, limits or regions",
        shown={200: progress.Simulation},
        sent=progress.WhatIf,
        refuses=(400, *READ_REFUSALS, 404, 413, 415),
    ),
    ("rollouts-list", "GET"): listing(progress.Rollout, "rollouts"),
    ("rollouts-detail", "GET"): detail(
        progress.Rollout, "a rollout; `wait` returns when it ends", "wait", version=False
    ),
    ("apply", "PUT"): write(
        "Apply a document",
        {200: writing.Applied},
        writing.Objects,
        "prune",
        *MANAGED,
        "refuse_overload",
        "confirm",
        "take_over",
    ),
    ("changes-detail", "GET"): detail(
        progress.ChangeProgress, "the progress of one of your changes", "wait", version=False
    ),
    ("changes-revert", "POST"): replace(
        write("Take back the progress of one of your changes", {200: writing.Applied}, None, *MANAGED, "confirm"),
        refuses=(*DRAIN.refuses, 404),
    ),
    ("trace", "POST"): Operation(
        summary="Trace a request without sending it",
        shown={200: tracing.TraceAnswer},
        sent=tracing.Trace,
        refuses=(400, *READ_REFUSALS, 413, 415),
    ),
    ("routes-batch", "POST"): replace(BATCH, summary="Create, update and delete many routes"),
    ("pools-batch", "POST"): replace(
        BATCH,
        summary="Create, update and delete many pools",
        query=(*BATCH.query, "take_over"),
        tells=("X-Spillway-Kept", *BATCH.tells),
    ),
    ("revisions-roll-back", "POST"): replace(
        of_one("Roll back to an earlier revision and hold the fleet there", {202: progress.Rollout}),
        tells=("Location", *REPLAYED),
    ),
    ("rollouts-push-to-all", "POST"): of_one(
        "Push a rollout to all nodes without further waves", {202: progress.Rollout}
    ),
    ("fleets-push", "POST"): of_one("Redeploy a fleet", {202: None}),
    ("fleets-resume", "POST"): of_one("Resume a held fleet", {202: None}),
    ("quarantine-list", "GET"): listing(progress.Quarantined, "the objects in quarantine"),
    ("quarantine-try-again", "POST"): of_one("Retry an object in quarantine", {202: None}),
    ("plans-list", "GET"): listing(plans.Plan, "plans"),
    ("plans-detail", "GET"): detail(plans.PlanDetail, "a plan and everything that it would change", version=False),
    ("plans-apply", "POST"): replace(
        write("Apply a plan exactly", {200: writing.Applied}),
        query=("wait", "confirm", "break_glass"),
        refuses=(*DRAIN.refuses, 404),
    ),
}


def query_names(operation: Operation) -> list[str]:
    """The words that the query may have; `action-word` is another schema of `action`."""
    return [name.partition("-word")[0] for name in operation.query]


def operation_of(url_name: str, method: str) -> Operation | None:
    """What is written down of a method of a URL; HEAD is GET."""
    return OPERATIONS.get((url_name, "GET" if method == "HEAD" else method))
