"""Every page by noun; a noun's views stand in the module of its name."""

from __future__ import annotations

from django.urls import path, re_path

from apps.web.accounts import audit, grants, invitations, people, tokens, webhooks
from apps.web.accounts import views as accounts
from apps.web.alerts import channels as alert_channels
from apps.web.alerts import now as alerts
from apps.web.alerts import rules as alert_rules
from apps.web.bulk import pools as bulk_pools
from apps.web.bulk import routes as bulk_routes
from apps.web.capacity import actions as capacity_acting
from apps.web.capacity import blackouts
from apps.web.capacity import comparisons as capacity_comparing
from apps.web.capacity import editing as capacity_editing
from apps.web.capacity import export as capacity_export
from apps.web.capacity import runs as capacity_runs
from apps.web.capacity import views as capacity_tests
from apps.web.changes import views as changes
from apps.web.clouds import cloud_accounts, stack_revisions, stacks, static_ips
from apps.web.clouds import forms as cloud_forms
from apps.web.finding import definition, siblings, used_by
from apps.web.first_steps import views as example
from apps.web.fleets import enrolment, quarantine, regions, rollouts
from apps.web.fleets import forms as fleet_forms
from apps.web.fleets import views as fleets
from apps.web.kit.pages import page, post_page
from apps.web.load_balancers import certificates, exporting, importing, portability
from apps.web.load_balancers import forms as load_balancer_forms
from apps.web.load_balancers import views as load_balancers
from apps.web.overflow import views as overflow
from apps.web.overview import badges, options, search, wall
from apps.web.overview import views as overview
from apps.web.policies import client_bans
from apps.web.policies import lists as network_lists
from apps.web.policies import views as policies
from apps.web.pools import limits as pool_limits
from apps.web.pools import replacements
from apps.web.pools import views as pools
from apps.web.reports import views as reports
from apps.web.requests import forwards, log_settings, sql
from apps.web.requests import patterns as request_patterns
from apps.web.requests import saved as saved_searches
from apps.web.requests import views as requests
from apps.web.routes import canaries, hostnames, sides, tracing, weights
from apps.web.routes import editing as route_editing
from apps.web.routes import views as routes
from apps.web.schedules import calendar as calendar_page
from apps.web.schedules import editing as schedules_editing
from apps.web.schedules import triggers as schedules_triggers
from apps.web.schedules import views as schedules
from apps.web.sign_in import sessions
from apps.web.sizing import views as sizing
from apps.web.status_pages import incidents
from apps.web.status_pages import views as status_pages
from apps.web.system import views as system
from apps.web.zones import forms as zone_forms
from apps.web.zones import testing as zone_testing
from apps.web.zones import views as zones

app_name = "web"
urlpatterns = [
    path("sign-in", sessions.sign_in, name="sign-in"),
    path("sign-out", sessions.sign_out, name="sign-out"),
    path("invitations/<str:secret>", invitations.accept, name="invitation"),
    path("switch", accounts.switch, name="switch-account"),
    path("stop-impersonating", accounts.stop_impersonating, name="stop-impersonating"),
    path("", overview.overview, name="overview"),
    path("example/load", example.load, name="example-load"),
    path("example/remove", example.remove, name="example-remove"),
    path("wall", wall.wall, name="wall"),
    path("account", accounts.own, name="own-account"),
    path("accounts", accounts.index, name="accounts"),
    path("new-account", accounts.new, name="account-new"),
    path("accounts/<slug:name>", accounts.detail, name="account"),
    path("accounts/<slug:name>/edit", accounts.edit, name="account-edit"),
    path("accounts/<slug:name>/suspend", accounts.suspend, name="account-suspend"),
    path("accounts/<slug:name>/impersonate", accounts.impersonate, name="account-impersonate"),
    path("system", system.index, name="system"),
    path("system/publications/<int:pk>/overwrite", system.overwrite, name="publication-overwrite"),
    path("people", people.index, name="people"),
    path("people/invite", people.invite, name="invite"),
    path("people/<int:pk>/role", people.change_role, name="person-role"),
    path("people/<int:pk>/remove", people.remove, name="person-remove"),
    path("people/invitations/<int:pk>/take-back", people.take_back, name="invitation-take-back"),
    path("tokens", tokens.index, name="tokens"),
    path("tokens/new", tokens.new, name="token-new"),
    path("tokens/<int:pk>/revoke", tokens.revoke, name="token-revoke"),
    path("search", search.search, name="search"),
    path("options/<slug:kind>", options.options, name="options"),
    path("siblings/<slug:kind>/<int:pk>", siblings.index, name="siblings"),
    path("definition/<slug:kind>/<int:pk>", definition.index, name="definition"),
    path("used-by/<slug:kind>/<int:pk>", used_by.index, name="used-by"),
    path("badges", badges.badges, name="badges"),
    path("load-balancers", load_balancers.index, name="load-balancers"),
    *load_balancer_forms.LOAD_BALANCERS.urls("load-balancers", "load-balancer", deletes=True),
    path("load-balancers/<int:pk>", load_balancers.detail, name="load-balancer"),
    path("load-balancers/<int:pk>/listeners/new", load_balancer_forms.new_listener, name="listener-new"),
    path(
        "load-balancers/<int:pk>/listeners/<int:listener>/edit", load_balancer_forms.edit_listener, name="listener-edit"
    ),
    path(
        "load-balancers/<int:pk>/listeners/<int:listener>/delete",
        load_balancer_forms.delete_listener,
        name="listener-delete",
    ),
    path("changes", changes.index, name="changes"),
    path("changes/<int:pk>", changes.detail, name="change"),
    path("changes/<int:pk>/revert", changes.revert, name="change-revert"),
    path("routes", routes.index, name="routes"),
    path("routes/new", route_editing.new, name="route-new"),
    path("routes/trace", tracing.trace, name="route-trace"),
    path("routes/check", route_editing.check, name="route-check"),
    path("routes/bulk", bulk_routes.change_routes, name="routes-bulk"),
    path("routes/<int:pk>", routes.detail, name="route"),
    path("routes/<int:pk>/fetch-key-set", routes.fetch_key_set, name="route-fetch-key-set"),
    path("routes/<int:pk>/sides", sides.sides, name="route-sides"),
    path("routes/<int:pk>/weights", weights.send, name="route-weights"),
    path("routes/<int:pk>/edit", route_editing.edit, name="route-edit"),
    path("routes/<int:pk>/delete", routes.delete, name="route-delete"),
    path("pools", pools.index, name="pools"),
    path("pools/new", pools.new, name="pool-new"),
    path("pools/bulk", bulk_pools.change_pools, name="pools-bulk"),
    path("pools/<int:pk>", pools.detail, name="pool"),
    path("pools/<int:pk>/edit", pools.edit, name="pool-edit"),
    path("pools/<int:pk>/delete", pools.delete, name="pool-delete"),
    path("pools/<int:pk>/limit", pool_limits.change, name="pool-limit"),
    path("pools/<int:pk>/servers", pools.change_servers, name="pool-servers"),
    path("pools/<int:pk>/replacements", replacements.of_pool, name="pool-replacements"),
    path("replacements/<int:pk>", replacements.detail, name="replacement"),
    path("replacements/<int:pk>/continue", replacements.carry_on, name="replacement-continue"),
    *(
        path(f"replacements/<int:pk>/{act}", replacements.decide, {"act": act}, name=f"replacement-{act}")
        for act in replacements.ACTS
    ),
    path("routes/<int:pk>/canary", canaries.of_route, name="route-canary"),
    path("canaries/<int:pk>", canaries.detail, name="canary"),
    *(path(f"canaries/<int:pk>/{act}", canaries.decide, {"act": act}, name=f"canary-{act}") for act in canaries.ACTS),
    path("grants", grants.index, name="grants"),
    path("grants/<slug:name>", grants.detail, name="grant"),
    path("new-grant", grants.new, name="grant-new"),
    path("grants/<slug:name>/edit", grants.edit, name="grant-edit"),
    path("grants/<slug:name>/delete", grants.delete, name="grant-delete"),
    path("hostnames", hostnames.index, name="hostnames"),
    path("hostnames/new", hostnames.new, name="hostname-new"),
    path("hostnames/<int:pk>", hostnames.detail, name="hostname"),
    path("hostnames/<int:pk>/check", hostnames.check, name="hostname-check"),
    path("hostnames/<int:pk>/verify", hostnames.verify, name="hostname-verify"),
    path("hostnames/<int:pk>/release", hostnames.release, name="hostname-release"),
    path("overflow", overflow.index, name="overflow"),
    path("regions", regions.index, name="regions"),
    path("new-region", page(fleet_forms.REGIONS.new), name="region-new"),
    path("regions/<int:pk>/edit", page(fleet_forms.REGIONS.edit), name="region-edit"),
    path("regions/<int:pk>/delete", post_page(fleet_forms.REGIONS.delete), name="region-delete"),
    path("regions/<slug:name>", regions.detail, name="region"),
    path("regions/<slug:name>/drain", regions.drain, name="region-drain"),
    path("fleets", fleets.index, name="fleets"),
    *fleet_forms.FLEETS.urls("fleets", "fleet", deletes=True),
    path("fleets/<int:pk>", fleets.fleet, name="fleet"),
    path("fleets/<int:pk>/push", fleets.push_again, name="fleet-push"),
    path("fleets/<int:pk>/resume", fleets.resume, name="fleet-resume"),
    path("enrolment", enrolment.index, name="enrolment"),
    path("enrolment/new", enrolment.new, name="node-enrol"),
    path("enrolment/tokens/<int:pk>/withdraw", enrolment.withdraw, name="enrolment-withdraw"),
    path("enrolment/authorities/rotate", enrolment.rotate, name="authority-rotate"),
    path("enrolment/authorities/<int:pk>/retire", enrolment.retire, name="authority-retire"),
    path("nodes/<int:pk>/revoke", enrolment.revoke, name="node-revoke"),
    *fleet_forms.NODES.urls("nodes", "node", deletes=True),
    path("nodes/<int:pk>", fleets.node, name="node"),
    path("quarantine", quarantine.index, name="quarantine"),
    path("quarantine/<int:pk>/try-again", quarantine.try_again, name="quarantine-try-again"),
    path("rollouts", rollouts.index, name="rollouts"),
    path("rollouts/<int:pk>", rollouts.detail, name="rollout"),
    path("rollouts/<int:pk>/push-to-all", rollouts.push_to_all, name="push-to-all"),
    path("revisions/<int:pk>/roll-back", rollouts.roll_back, name="roll-back"),
    path("schedules", schedules.index, name="schedules"),
    path("schedules/calendar", calendar_page.index, name="schedules-calendar"),
    path("schedules/new", schedules_editing.new, name="schedule-new"),
    path("schedules/preview", schedules_editing.preview, name="schedule-preview"),
    path("schedules/bulk", schedules.bulk, name="schedules-bulk"),
    path("schedules/<int:pk>", schedules.detail, name="schedule"),
    path("schedules/<int:pk>/edit", schedules_editing.edit, name="schedule-edit"),
    path("schedules/<int:pk>/delete", schedules.delete, name="schedule-delete"),
    path("schedules/<int:pk>/run", schedules.run, name="schedule-run"),
    path("schedules/<int:pk>/pause", schedules.pause, name="schedule-pause"),
    path("schedules/<int:pk>/resume", schedules.resume, name="schedule-resume"),
    path("schedules/<int:pk>/signing-secret", schedules_triggers.sign, name="schedule-sign"),
    path("schedules/<int:pk>/triggers", schedules_triggers.make, name="trigger-new"),
    path("schedules/<int:pk>/triggers/<int:trigger>/rotate", schedules_triggers.rotate, name="trigger-rotate"),
    path("schedules/<int:pk>/triggers/<int:trigger>/delete", schedules_triggers.delete, name="trigger-delete"),
    path("schedule-runs/<int:pk>/retry", schedules.retry, name="schedule-run-retry"),
    path("static-ips", static_ips.index, name="static-ips"),
    *cloud_forms.STATIC_IPS.urls("static-ips", "static-ip"),
    path("static-ips/<int:pk>", static_ips.detail, name="static-ip"),
    path("static-ips/<int:pk>/move", static_ips.move, name="static-ip-move"),
    path("static-ips/<int:pk>/release", static_ips.release, name="static-ip-release"),
    path("static-ips/<int:pk>/delete", static_ips.delete, name="static-ip-delete"),
    *cloud_forms.ADDRESS_POOLS.urls("address-pools", "address-pool"),
    path("address-pools/<int:pk>/delete", static_ips.delete_pool, name="address-pool-delete"),
    path("cloud-accounts", cloud_accounts.index, name="cloud-accounts"),
    *cloud_forms.CLOUD_ACCOUNTS.urls("cloud-accounts", "cloud-account"),
    path("cloud-accounts/<int:pk>/test", cloud_accounts.test_connection, name="cloud-account-test"),
    path("cloud-accounts/<int:pk>/delete", cloud_accounts.delete, name="cloud-account-delete"),
    path("adopt", cloud_accounts.adopt, name="adopt"),
    path("import", importing.index, name="import"),
    re_path(r"^import/(?P<plan>[0-9a-f]{32})/apply$", importing.apply, name="import-apply"),
    path("export/<int:pk>", exporting.detail, name="export"),
    path("portability/<int:pk>", portability.detail, name="portability"),
    path("stacks", stacks.index, name="stacks"),
    *cloud_forms.STACKS.urls("stacks", "stack"),
    path("stacks/<int:pk>", stacks.detail, name="stack"),
    path("stacks/<int:pk>/plan", stacks.plan, name="stack-plan"),
    path("stacks/<int:pk>/check", stacks.check, name="stack-check"),
    path("stacks/<int:pk>/destroy", stacks.destroy, name="stack-destroy"),
    path("stacks/<int:pk>/delete", stacks.delete, name="stack-delete"),
    path("stacks/<int:pk>/unlock", stacks.unlock, name="stack-unlock"),
    path("stacks/<int:pk>/revisions/<int:number>", stack_revisions.revision, name="stack-revision"),
    path("stacks/<int:pk>/states/<int:number>", stacks.state, name="stack-state"),
    path("stack-runs/<int:pk>", stacks.run, name="stack-run"),
    path("stack-runs/<int:pk>/approve", stacks.approve, name="stack-run-approve"),
    *(
        path(f"stack-runs/<int:pk>/{decision}", stacks.decide, {"decision": decision}, name=f"stack-run-{decision}")
        for decision in stacks.DECISIONS
    ),
    path("capacity-tests", capacity_tests.index, name="capacity-tests"),
    path("capacity-tests/new", capacity_editing.new, name="capacity-test-new"),
    path("capacity-tests/check", capacity_editing.check, name="capacity-test-check"),
    path("capacity-tests/<int:pk>", capacity_tests.detail, name="capacity-test"),
    path("capacity-tests/<int:pk>/edit", capacity_editing.edit, name="capacity-test-edit"),
    path("capacity-tests/<int:pk>/delete", capacity_tests.delete, name="capacity-test-delete"),
    path("capacity-tests/<int:pk>/run", capacity_acting.start, name="capacity-test-run"),
    path("capacity-runs/compare", capacity_comparing.runs, name="capacity-runs-compare"),
    path("capacity-tests/<int:pk>/compare", capacity_comparing.start, name="capacity-test-compare"),
    path("capacity-comparisons/<int:pk>", capacity_comparing.detail, name="capacity-comparison"),
    path("sizing", sizing.index, name="sizing"),
    path("reports", reports.index, name="reports"),
    re_path(r"^reports/(?P<name>20[0-9]{2}-(?:0[1-9]|1[0-2]))$", reports.detail, name="report"),
    path("blackouts", blackouts.index, name="blackouts"),
    path("blackouts/<int:pk>/end", blackouts.end, name="blackout-end"),
    path("capacity-runs/<int:pk>", capacity_runs.detail, name="capacity-run"),
    path("capacity-runs/<int:pk>/stop", capacity_acting.stop, name="capacity-run-stop"),
    path("capacity-runs/<int:pk>/approve", capacity_acting.approve, name="capacity-run-approve"),
    path("capacity-runs/<int:pk>/limit", capacity_acting.limit, name="capacity-run-limit"),
    re_path(
        r"^capacity-runs/(?P<pk>[0-9]{1,18})/export\.(?P<kind>csv|json)$",
        capacity_export.export,
        name="capacity-run-export",
    ),
    path("alerts", alerts.index, name="alerts"),
    path("alerts/<int:pk>", alerts.detail, name="alert"),
    path("alerts/<int:pk>/acknowledge", alerts.acknowledge, name="alert-acknowledge"),
    path("alerts/acknowledge", alerts.acknowledge_several, name="alerts-acknowledge"),
    path("alerts/silence", alerts.silence, name="alert-silence"),
    path("alerts/silences/<int:pk>/end", alerts.end_silence, name="alert-silence-end"),
    path("alerts/rules", alert_rules.index, name="alert-rules"),
    path("alerts/rules/new", alert_rules.new, name="alert-rule-new"),
    path("alerts/rules/<slug:name>/switch", alert_rules.switch, name="alert-rule-switch"),
    path("alerts/rules/<int:pk>/edit", alert_rules.edit, name="alert-rule-edit"),
    path("alerts/rules/<int:pk>/delete", alert_rules.delete, name="alert-rule-delete"),
    path("alerts/channels", alert_channels.index, name="alert-channels"),
    path("alerts/channels/new", alert_channels.new, name="alert-channel-new"),
    path("alerts/channels/<int:pk>", alert_channels.detail, name="alert-channel"),
    path("alerts/channels/<int:pk>/edit", alert_channels.edit, name="alert-channel-edit"),
    path("alerts/channels/<int:pk>/test", alert_channels.send_test, name="alert-channel-test"),
    path("alerts/channels/<int:pk>/delete", alert_channels.delete, name="alert-channel-delete"),
    path("webhooks", webhooks.index, name="webhooks"),
    path("webhooks/new", webhooks.new, name="webhook-new"),
    path("webhooks/<int:pk>", webhooks.detail, name="webhook"),
    path("webhooks/<int:pk>/edit", webhooks.edit, name="webhook-edit"),
    path("webhooks/<int:pk>/rotate", webhooks.rotate, name="webhook-rotate"),
    path("webhooks/<int:pk>/test", webhooks.send_test, name="webhook-test"),
    path("webhooks/<int:pk>/delete", webhooks.delete, name="webhook-delete"),
    path("webhooks/<int:pk>/deliveries/<int:delivery>/redeliver", webhooks.redeliver, name="webhook-redeliver"),
    path("status-pages", status_pages.index, name="status-pages"),
    path("status-pages/new", status_pages.new, name="status-page-new"),
    path("status-pages/<int:pk>", status_pages.detail, name="status-page"),
    path("status-pages/<int:pk>/edit", status_pages.edit, name="status-page-edit"),
    path("status-pages/<int:pk>/delete", status_pages.delete, name="status-page-delete"),
    path("status-pages/<int:pk>/incidents/new", incidents.new, name="incident-new"),
    path("incidents/<int:pk>", incidents.detail, name="incident"),
    path("incidents/<int:pk>/delete", incidents.delete, name="incident-delete"),
    path("requests", requests.index, name="requests"),
    re_path(r"^requests/export\.(?P<kind>csv|jsonl)$", requests.export, name="requests-export"),
    re_path(r"^requests/archive\.(?P<kind>parquet|jsonl\.gz)$", log_settings.archive, name="requests-archive"),
    path("requests/sql", sql.ask, name="requests-sql"),
    path("requests/settings", log_settings.index, name="requests-settings"),
    path("requests/delete", log_settings.delete, name="requests-delete"),
    path("requests/saved", saved_searches.index, name="saved-searches"),
    path("requests/saved/new", saved_searches.new, name="saved-search-new"),
    path("requests/saved/<int:pk>", saved_searches.detail, name="saved-search"),
    path("requests/saved/<int:pk>/delete", saved_searches.delete, name="saved-search-delete"),
    path("requests/patterns", request_patterns.index, name="request-patterns"),
    path("log-forwards", forwards.index, name="log-forwards"),
    path("log-forwards/new", forwards.new, name="log-forward-new"),
    path("log-forwards/<int:pk>/edit", forwards.edit, name="log-forward-edit"),
    path("log-forwards/<int:pk>/test", forwards.send_test, name="log-forward-test"),
    path("log-forwards/<int:pk>/delete", forwards.delete, name="log-forward-delete"),
    path("requests/<slug:record_id>", requests.detail, name="request"),
    path("audit", audit.index, name="audit"),
    path("audit/<int:pk>", audit.detail, name="audit-entry"),
    re_path(r"^audit/export\.(?P<kind>csv|jsonl)$", audit.export, name="audit-export"),
    path("zones", zones.index, name="zones"),
    path("zones/new", zone_forms.new_zone, name="zone-new"),
    path("zones/<int:pk>", zones.detail, name="zone"),
    path("zones/<int:pk>/edit", zone_forms.edit_zone, name="zone-edit"),
    path("zones/<int:pk>/difference", zones.difference, name="zone-difference"),
    path("zones/<int:pk>/test", zone_testing.test_connection, name="zone-test"),
    path("zones/<int:pk>/repair", zones.repair, name="zone-repair"),
    path("zones/<int:pk>/delete", zones.delete, name="zone-delete"),
    path("zones/<int:pk>/records/new", zone_forms.new_record, name="record-new"),
    path("records/<int:pk>/edit", zone_forms.edit_record, name="record-edit"),
    path("records/<int:pk>/delete", zones.delete_record, name="record-delete"),
    path("network-lists", network_lists.index, name="network-lists"),
    path("network-lists/new", network_lists.new, name="network-list-new"),
    path("network-lists/<int:pk>", network_lists.detail, name="network-list"),
    path("network-lists/<int:pk>/edit", network_lists.edit, name="network-list-edit"),
    path("network-lists/<int:pk>/ban", network_lists.ban, name="network-list-ban"),
    path("network-lists/<int:pk>/lift", network_lists.lift, name="network-list-lift"),
    path("network-lists/<int:pk>/delete", network_lists.delete, name="network-list-delete"),
    path("client-bans", client_bans.index, name="client-bans"),
    path("client-bans/lift", client_bans.lift, name="client-ban-lift"),
    path("policies", policies.index, name="policies"),
    path("policies/new", policies.new, name="policy-new"),
    path("policies/<int:pk>", policies.detail, name="policy"),
    path("policies/<int:pk>/edit", policies.edit, name="policy-edit"),
    path("policies/<int:pk>/fetch-key-set", policies.fetch_key_set, name="policy-fetch-key-set"),
    path("policies/<int:pk>/delete", policies.delete, name="policy-delete"),
    path("certificates", certificates.index, name="certificates"),
    *certificates.AUTHORITIES.urls("certificate-authorities", "certificate-authority", deletes=True),
    path("certificates/new", certificates.new, name="certificate-new"),
    path("certificates/<int:pk>/renew", certificates.renew, name="certificate-renew"),
    path("certificates/<int:pk>/delete", certificates.delete, name="certificate-delete"),
]
