"""The URLs of the API, flat and plural."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from apps.api.v1 import description, enrolment, writes
from apps.api.v1.accounts import alerts, hostnames, incidents, people, publications, tokens, webhooks
from apps.api.v1.accounts.audit import EntryDetail, EntryList
from apps.api.v1.capacity import comparisons as comparing
from apps.api.v1.capacity import runs as capacity
from apps.api.v1.clouds import adoption as adopting
from apps.api.v1.clouds import stack_revisions, stacks, zones
from apps.api.v1.clouds import static_ips as addresses
from apps.api.v1.protocol.problems import no_such_url
from apps.api.v1.rollouts import batch, canaries, changes, importing, plans, pushing
from apps.api.v1.rollouts.progress import RevisionDetail, RevisionList, RolloutDetail, RolloutList
from apps.api.v1.schedules import triggers
from apps.api.v1.schedules import views as schedules
from apps.api.v1.shapes import URLS
from apps.api.v1.traffic import (
    bans,
    client_bans,
    exports,
    flows,
    health,
    heartbeats,
    key_sets,
    limits,
    log_forwards,
    objectives,
    replacements,
    trace,
)
from apps.api.v1.traffic import request_logs as logs
from apps.api.v1.traffic import saved_searches as saved
from apps.api.v1.views import NOUNS, DetailView, ListView
from apps.canaries import services as releasing
from apps.definitions.services import PLATFORM
from apps.replacements import services as replacing

OWN_VIEWS = {"hostnames", "invitations", "memberships", "pools", "servers", "tokens"}
PK = r"(?P<pk>[0-9]{1,20})"
DELIVERY = r"(?P<delivery>[0-9]{1,20})"
NUMBER = r"(?P<number>[0-9]{1,20})"
NAME = r"[a-z0-9-]{1,63}"
CHANGE = r"(?P<change>[A-Za-z0-9-]{8,64})"
PLAN = r"(?P<plan>[0-9a-f]{32})"
STACK, FLEET, REGION, ADDRESS, CLOUD = (
    rf"^{noun}/(?P<name>{NAME})" for noun in ("stacks", "fleets", "regions", "static-ips", "cloud-accounts")
)
NAMED = rf"(?P<account>{NAME})/(?P<name>{NAME})"


def _reads() -> list[URLPattern]:
    found = []
    for noun in NOUNS:
        if noun not in OWN_VIEWS and noun not in URLS.values():
            found.append(path(noun, ListView.as_view(noun=noun), name=f"{noun}-list"))
            found.append(re_path(rf"^{noun}/{PK}$", DetailView.as_view(noun=noun), name=f"{noun}-detail"))
    return found


def _acts() -> list[URLPattern]:
    """What is done to a replacement and to a canary without a body."""
    of_replacements = {
        "stop": replacing.stop_replacement,
        "resume": replacing.resume_replacement,
        "reverse": replacing.reverse_replacement,
        "end": replacing.end_replacement,
    }
    of_canaries = {
        "hold": releasing.hold_canary,
        "resume": releasing.resume_canary,
        "promote": releasing.promote_canary,
        "abort": releasing.abort_canary,
    }
    return [
        re_path(rf"^{noun}/{PK}/{name}$", view.as_view(service=service), name=f"{noun}-{name}")
        for noun, view, acts in (
            ("replacements", replacements.Act, of_replacements),
            ("canaries", canaries.Act, of_canaries),
        )
        for name, service in acts.items()
    ]


def _kinds() -> list[URLPattern]:
    """The URLs of every kind of object that apply takes; what belongs to the platform is named without an account."""
    found = []
    for kind, noun in URLS.items():
        collection = writes.RouteCollection if kind == "Route" else writes.Collection
        options = {} if kind == "Route" else {"kind": kind, "noun": noun}
        name = rf"(?P<name>{NAME})" if kind in PLATFORM else NAMED
        found += [
            path(noun, collection.as_view(**options), name=f"{noun}-list"),
            re_path(rf"^{noun}/{PK}$", writes.Change.as_view(kind=kind), name=f"{noun}-detail"),
            re_path(rf"^{noun}/{name}$", writes.ByName.as_view(kind=kind), name=f"{noun}-named"),
        ]
    return found


def _decisions() -> list[URLPattern]:
    """What is decided about runs of stacks."""
    return [
        re_path(rf"^stack-runs/{PK}/{act}$", stacks.Decide.as_view(act=act), name=f"stack-runs-{act}")
        for act in stacks.DECISIONS
    ]


app_name = "api"
urlpatterns = [
    path("openapi.json", description.Description.as_view(), name="openapi"),
    path("apply", plans.Apply.as_view(), name="apply"),
    path("import", importing.Import.as_view(), name="import"),
    path("trace", trace.Ask.as_view(), name="trace"),
    path("routes:batch", batch.Items.as_view(kind="Route"), name="routes-batch"),
    path("pools:batch", batch.Items.as_view(kind="Pool"), name="pools-batch"),
    re_path(rf"^revisions/{PK}/roll-back$", pushing.RollBack.as_view(), name="revisions-roll-back"),
    re_path(rf"^rollouts/{PK}/push-to-all$", pushing.PushToAll.as_view(), name="rollouts-push-to-all"),
    re_path(rf"{FLEET}/push$", pushing.PushAgain.as_view(), name="fleets-push"),
    re_path(rf"{FLEET}/resume$", pushing.Resume.as_view(), name="fleets-resume"),
    path("quarantine", pushing.QuarantineList.as_view(), name="quarantine-list"),
    re_path(rf"^quarantine/{PK}/try-again$", pushing.TryAgain.as_view(), name="quarantine-try-again"),
    path("plans", plans.PlanList.as_view(), name="plans-list"),
    re_path(rf"^plans/{PLAN}$", plans.PlanDetail.as_view(), name="plans-detail"),
    re_path(rf"^plans/{PLAN}/apply$", plans.PlanApply.as_view(), name="plans-apply"),
    re_path(rf"^changes/{CHANGE}$", changes.ChangeDetail.as_view(), name="changes-detail"),
    re_path(rf"^changes/{CHANGE}/revert$", changes.ChangeRevert.as_view(), name="changes-revert"),
    re_path(rf"^pools/{PK}/overflow$", flows.OfPool.as_view(), name="pools-overflow"),
    re_path(rf"^pools/{NAMED}/limits/(?P<region>{NAME})$", limits.PoolLimit.as_view(), name="pools-limit"),
    re_path(rf"^network-lists/{PK}/ban$", bans.Ban.as_view(), name="network-lists-ban"),
    re_path(rf"^network-lists/{PK}/lift$", bans.Ban.as_view(lifted=True), name="network-lists-lift"),
    path("publications", publications.Publications.as_view(), name="publications"),
    re_path(rf"^publications/{PK}/overwrite$", publications.Overwrite.as_view(), name="publications-overwrite"),
    path("client-bans", client_bans.ClientBans.as_view(), name="client-bans"),
    path("client-bans/lift", client_bans.Lift.as_view(), name="client-bans-lift"),
    re_path(rf"^policies/{PK}/fetch-key-set$", key_sets.FetchKeySet.as_view(), name="policies-fetch-key-set"),
    re_path(rf"^routes/{PK}/fetch-key-set$", key_sets.FetchKeySet.as_view(of_route=True), name="routes-fetch-key-set"),
    re_path(rf"{REGION}/drain$", limits.RegionDrain.as_view(), name="regions-drain"),
    re_path(rf"{REGION}/undrain$", limits.RegionDrain.as_view(drained=False), name="regions-undrain"),
    re_path(rf"{REGION}/latency/(?P<to>{NAME})$", limits.Latency.as_view(), name="regions-latency"),
    re_path(rf"^pools/{PK}/health$", health.OfPool.as_view(), name="pools-health"),
    re_path(rf"^pools/{NAMED}/health$", health.OfNamedPool.as_view(), name="pools-named-health"),
    re_path(rf"^pools/{PK}/objective$", objectives.OfPool.as_view(), name="pools-objective"),
    re_path(rf"^routes/{PK}/objective$", objectives.OfRoute.as_view(), name="routes-objective"),
    re_path(rf"{FLEET}/health$", health.OfFleet.as_view(), name="fleets-health"),
    re_path(rf"^nodes/(?P<name>{NAME})/health$", health.OfNode.as_view(), name="nodes-health"),
    re_path(rf"^nodes/(?P<name>{NAME})/enrolment-token$", enrolment.Token.as_view(), name="nodes-enrolment-token"),
    re_path(rf"^nodes/(?P<name>{NAME})/certificates$", enrolment.Certificates.as_view(), name="nodes-certificates"),
    re_path(rf"^nodes/(?P<name>{NAME})/revoke$", enrolment.Revoke.as_view(), name="nodes-revoke"),
    path("node-authorities", enrolment.Authorities.as_view(), name="node-authorities"),
    path("node-authorities/rotate", enrolment.Rotate.as_view(), name="node-authorities-rotate"),
    re_path(rf"^node-authorities/{PK}/retire$", enrolment.Retire.as_view(), name="node-authorities-retire"),
    path("consoles/health", health.OfConsoles.as_view(), name="consoles-health"),
    path("log-forwards", log_forwards.LogForwardCollection.as_view(), name="log-forwards-list"),
    re_path(rf"^log-forwards/{PK}$", log_forwards.LogForwardDetail.as_view(), name="log-forwards-detail"),
    re_path(rf"^log-forwards/{PK}:test$", log_forwards.LogForwardTest.as_view(), name="log-forwards-test"),
    path("request-logs", logs.LineList.as_view(), name="request-logs-list"),
    path("request-logs/histogram", logs.Bins.as_view(), name="request-logs-histogram"),
    path("request-logs/facets", logs.Facets.as_view(), name="request-logs-facets"),
    path("request-logs/patterns/<slug:name>", logs.Pattern.as_view(), name="request-logs-pattern"),
    path("saved-searches", saved.Collection.as_view(), name="saved-searches-list"),
    re_path(rf"^saved-searches/{PK}$", saved.Detail.as_view(), name="saved-searches-detail"),
    re_path(rf"^saved-searches/{PK}/history$", saved.History.as_view(), name="saved-searches-history"),
    path("request-logs/settings", logs.Settings.as_view(), name="request-logs-settings"),
    re_path(
        r"^request-logs/archive\.(?P<kind>parquet|jsonl\.gz)$", logs.Archive.as_view(), name="request-logs-archive"
    ),
    path("request-logs:delete", logs.Deletion.as_view(), name="request-logs-delete"),
    path("request-logs:sql", logs.Sql.as_view(), name="request-logs-sql"),
    re_path(r"^request-logs/(?P<record>[0-9a-f-]{1,64})$", logs.LineDetail.as_view(), name="request-logs-detail"),
    path("overflow", flows.Overall.as_view(), name="overflow"),
    path("overflow/what-if", flows.WhatIfAnswer.as_view(), name="overflow-what-if"),
    re_path(rf"^pools/{NAMED}/overflow$", flows.OfNamedPool.as_view(), name="pools-named-overflow"),
    re_path(
        rf"^pools/{NAMED}/servers/(?P<region>{NAME})/(?P<server>{NAME})$",
        heartbeats.OwnServer.as_view(),
        name="pools-own-server",
    ),
    re_path(rf"^pools/{NAMED}/replacements$", replacements.OfPool.as_view(), name="pools-replacements"),
    path("replacements", replacements.Collection.as_view(), name="replacements-list"),
    re_path(rf"^replacements/{PK}$", replacements.Detail.as_view(), name="replacements-detail"),
    re_path(rf"^replacements/{PK}/continue$", replacements.Continue.as_view(), name="replacements-continue"),
    re_path(rf"^routes/{NAMED}/canaries$", canaries.OfRoute.as_view(), name="routes-canaries"),
    path("canaries", canaries.Collection.as_view(), name="canaries-list"),
    re_path(rf"^canaries/{PK}$", canaries.Detail.as_view(), name="canaries-detail"),
    *_acts(),
    path("servers", ListView.as_view(noun="servers"), name="servers-list"),
    re_path(rf"^servers/{PK}$", writes.ServerDetail.as_view(), name="servers-detail"),
    path("revisions", RevisionList.as_view(), name="revisions-list"),
    path("schedules/preview", schedules.Preview.as_view(), name="schedules-preview"),
    re_path(rf"^schedules/{PK}/runs$", schedules.RunsOfSchedule.as_view(), name="schedules-runs"),
    re_path(rf"^schedules/{PK}/run$", schedules.RunNow.as_view(), name="schedules-run"),
    re_path(rf"^schedules/{PK}/pause$", schedules.Pause.as_view(), name="schedules-pause"),
    re_path(rf"^schedules/{PK}/resume$", schedules.Pause.as_view(paused=False), name="schedules-resume"),
    re_path(rf"^schedules/{PK}/signing-secret$", schedules.SigningSecret.as_view(), name="schedules-secret"),
    path("schedule-runs", schedules.ScheduleRunList.as_view(), name="schedule-runs-list"),
    re_path(rf"^schedule-runs/{PK}$", schedules.ScheduleRunDetail.as_view(), name="schedule-runs-detail"),
    re_path(rf"^schedule-runs/{PK}/retry$", schedules.Retry.as_view(), name="schedule-runs-retry"),
    path("triggers", triggers.TriggerCollection.as_view(), name="triggers-list"),
    re_path(rf"^triggers/{PK}$", triggers.TriggerDetail.as_view(), name="triggers-detail"),
    re_path(rf"^triggers/{PK}/rotate$", triggers.Rotate.as_view(), name="triggers-rotate"),
    re_path(rf"^topics/(?P<name>{NAME})/messages$", schedules.Messages.as_view(), name="topics-messages"),
    re_path(rf"^revisions/{PK}$", RevisionDetail.as_view(), name="revisions-detail"),
    path("alerts", alerts.AlertList.as_view(), name="alerts-list"),
    re_path(rf"^alerts/{PK}$", alerts.AlertDetail.as_view(), name="alerts-detail"),
    re_path(rf"^alerts/{PK}/acknowledge$", alerts.Acknowledge.as_view(), name="alerts-acknowledge"),
    path("incidents", incidents.IncidentCollection.as_view(), name="incidents-list"),
    re_path(rf"^incidents/{PK}$", incidents.IncidentDetail.as_view(), name="incidents-detail"),
    re_path(rf"^incidents/{PK}/updates$", incidents.IncidentUpdates.as_view(), name="incidents-updates"),
    path("silences", alerts.SilenceCollection.as_view(), name="silences-list"),
    re_path(rf"^silences/{PK}$", alerts.SilenceDetail.as_view(), name="silences-detail"),
    re_path(rf"^alert-channels/{PK}/test$", alerts.SendTest.as_view(), name="alert-channels-test"),
    re_path(rf"^alert-channels/{PK}/messages$", alerts.Messages.as_view(), name="alert-channels-messages"),
    path("webhooks", webhooks.WebhookCollection.as_view(), name="webhooks-list"),
    re_path(rf"^webhooks/{PK}$", webhooks.WebhookDetail.as_view(), name="webhooks-detail"),
    re_path(rf"^webhooks/{PK}:rotate$", webhooks.Rotate.as_view(), name="webhooks-rotate"),
    re_path(rf"^webhooks/{PK}:test$", webhooks.SendTest.as_view(), name="webhooks-test"),
    re_path(rf"^webhooks/{PK}/deliveries$", webhooks.DeliveryList.as_view(), name="webhooks-deliveries"),
    re_path(rf"^webhooks/{PK}/deliveries/{DELIVERY}$", webhooks.DeliveryDetail.as_view(), name="webhooks-delivery"),
    re_path(
        rf"^webhooks/{PK}/deliveries/{DELIVERY}:redeliver$", webhooks.Redeliver.as_view(), name="webhooks-redeliver"
    ),
    path("audit-entries", EntryList.as_view(), name="audit-entries-list"),
    re_path(rf"^audit-entries/{PK}$", EntryDetail.as_view(), name="audit-entries-detail"),
    path("rollouts", RolloutList.as_view(), name="rollouts-list"),
    re_path(rf"^rollouts/{PK}$", RolloutDetail.as_view(), name="rollouts-detail"),
    path("memberships", ListView.as_view(noun="memberships"), name="memberships-list"),
    re_path(rf"^memberships/{PK}$", people.MembershipDetail.as_view(), name="memberships-detail"),
    path("invitations", people.InvitationList.as_view(), name="invitations-list"),
    re_path(rf"^invitations/{PK}$", people.InvitationDetail.as_view(), name="invitations-detail"),
    path("hostnames", hostnames.HostnameList.as_view(), name="hostnames-list"),
    re_path(rf"^hostnames/{PK}$", hostnames.HostnameDetail.as_view(), name="hostnames-detail"),
    re_path(rf"^hostnames/{PK}/check$", hostnames.HostnameCheck.as_view(), name="hostnames-check"),
    re_path(rf"^hostnames/{PK}/verification$", hostnames.HostnameVerification.as_view(), name="hostnames-verification"),
    re_path(rf"^hostnames/{PK}/cooldown$", hostnames.HostnameCooldown.as_view(), name="hostnames-cooldown"),
    re_path(rf"^capacity-tests/{PK}/run$", capacity.RunTest.as_view(), name="capacity-tests-run"),
    re_path(rf"^capacity-tests/{PK}/checks$", capacity.Checks.as_view(), name="capacity-tests-checks"),
    path("capacity-runs", capacity.RunList.as_view(), name="capacity-runs-list"),
    re_path(rf"^capacity-runs/{PK}$", capacity.RunDetail.as_view(), name="capacity-runs-detail"),
    re_path(rf"^capacity-runs/{PK}/steps$", capacity.StepList.as_view(), name="capacity-runs-steps"),
    re_path(rf"^capacity-runs/{PK}/seconds$", capacity.SecondList.as_view(), name="capacity-runs-seconds"),
    re_path(rf"^capacity-runs/{PK}/stop$", capacity.Stop.as_view(), name="capacity-runs-stop"),
    re_path(rf"^capacity-runs/{PK}/approve$", capacity.Approve.as_view(), name="capacity-runs-approve"),
    re_path(rf"^capacity-runs/{PK}/set-limit$", capacity.SetLimit.as_view(), name="capacity-runs-set-limit"),
    path("capacity-comparisons", comparing.ComparisonList.as_view(), name="capacity-comparisons-list"),
    re_path(rf"^capacity-comparisons/{PK}$", comparing.ComparisonDetail.as_view(), name="capacity-comparisons-detail"),
    path("sizing", comparing.Sizing.as_view(), name="sizing"),
    re_path(rf"{ADDRESS}/move$", addresses.Move.as_view(), name="static-ips-move"),
    re_path(rf"{ADDRESS}/release$", addresses.Release.as_view(), name="static-ips-release"),
    re_path(
        rf"^load-balancers/{NAMED}/export$", exports.LoadBalancerExport.as_view(), name="load-balancers-named-export"
    ),
    re_path(rf"^load-balancers/{PK}/portability$", addresses.Portability.as_view(), name="load-balancers-portability"),
    re_path(rf"{CLOUD}/load-balancers$", adopting.LoadBalancers.as_view(), name="cloud-accounts-load-balancers"),
    re_path(rf"{CLOUD}/adopt$", adopting.Adopt.as_view(), name="cloud-accounts-adopt"),
    re_path(rf"{STACK}/state$", stacks.State.as_view(), name="stacks-state"),
    re_path(rf"{STACK}/runs$", stacks.Runs.as_view(), name="stacks-runs"),
    re_path(rf"{STACK}/revisions$", stack_revisions.Revisions.as_view(), name="stacks-revisions"),
    re_path(rf"{STACK}/revisions/{NUMBER}$", stack_revisions.RevisionDocument.as_view(), name="stacks-revision"),
    re_path(
        rf"{STACK}/revisions/{NUMBER}/differences$",
        stack_revisions.Differences.as_view(),
        name="stacks-revision-differences",
    ),
    re_path(rf"{STACK}/states/{NUMBER}$", stack_revisions.StateContent.as_view(), name="stacks-state-content"),
    re_path(rf"{STACK}/check$", stacks.Check.as_view(), name="stacks-check"),
    re_path(rf"{STACK}/states$", stacks.States.as_view(), name="stacks-states"),
    re_path(rf"{STACK}/lock$", stacks.Lock.as_view(), name="stacks-lock"),
    re_path(rf"{STACK}/force-unlock$", stacks.ForceUnlock.as_view(), name="stacks-force-unlock"),
    re_path(rf"{STACK}/plan$", stacks.Plan.as_view(), name="stacks-plan"),
    re_path(rf"{STACK}/destroy$", stacks.Destroy.as_view(), name="stacks-destroy"),
    path("stack-runs", stacks.RunList.as_view(), name="stack-runs-list"),
    re_path(rf"^stack-runs/{PK}$", stacks.RunDetail.as_view(), name="stack-runs-detail"),
    re_path(rf"^stack-runs/{PK}/events$", stacks.RunEvents.as_view(), name="stack-runs-events"),
    re_path(rf"^zones/{PK}/state$", zones.State.as_view(), name="zones-state"),
    re_path(rf"^zones/{PK}/differences$", zones.Differences.as_view(), name="zones-differences"),
    re_path(rf"^zones/{PK}/repair$", zones.Repair.as_view(), name="zones-repair"),
    path("blackouts", capacity.BlackoutList.as_view(), name="blackouts-list"),
    re_path(rf"^blackouts/{PK}$", capacity.BlackoutDetail.as_view(), name="blackouts-detail"),
    path("tokens", tokens.TokenList.as_view(), name="tokens-list"),
    re_path(rf"^tokens/{PK}$", tokens.TokenDetail.as_view(), name="tokens-detail"),
    *_decisions(),
    *_kinds(),
    *_reads(),
    re_path(r"", no_such_url),
]
