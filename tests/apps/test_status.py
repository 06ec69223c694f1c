"""Status pages: how components are, and what people write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.definitions.models import AlertRule, Route, StatusPage
from apps.definitions.services import apply_document, delete_object, save_object
from apps.observe.evaluate.conditions import Reason, Type
from apps.status import days, services
from apps.status.components import components_of
from apps.status.models import Incident, IncidentUpdate, PoolDay
from apps.status.states import State, overall, sentence, together
from tests.apps.alerts_env import Installation, make_pool
from tests.apps.status_env import (
    DEGRADED,
    FINE,
    FIRST,
    MAJOR,
    PARTIAL,
    UNKNOWN,
    WORK,
    at,
    checkout,
    day,
    installation,
    make_page,
    pools_behind,
    shown,
)

__all__ = ["installation"]


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([], UNKNOWN),
        ([FINE, FINE], FINE),
        ([FINE, UNKNOWN], UNKNOWN),
        ([UNKNOWN, DEGRADED], DEGRADED),
        ([MAJOR, FINE], PARTIAL),
        ([MAJOR, UNKNOWN], PARTIAL),
        ([MAJOR, MAJOR], MAJOR),
    ],
)
def test_a_component_is_as_its_parts_are_and_unknown_is_never_well(parts: list[State], found: State) -> None:
    assert together(parts) == found


@pytest.mark.parametrize(
    ("states", "state", "words"),
    [
        ([], UNKNOWN, "This page has no components yet"),
        ([FINE, FINE], FINE, "All systems are operational"),
        ([FINE, UNKNOWN], UNKNOWN, "The state of some systems is unknown"),
        ([UNKNOWN], UNKNOWN, "The state is unknown"),
        ([FINE, WORK], WORK, "Maintenance is in progress"),
        ([DEGRADED, WORK], DEGRADED, "Some systems are degraded"),
        ([PARTIAL, FINE], PARTIAL, "Some systems have an outage"),
        ([MAJOR, FINE], MAJOR, "Some systems have an outage"),
        ([MAJOR, WORK], MAJOR, "Some systems have an outage"),
        ([MAJOR], MAJOR, "Major outage"),
    ],
)
def test_one_sentence_says_how_all_are_and_planned_work_hides_nothing_worse(
    states: list[State], state: State, words: str
) -> None:
    assert (overall(states), sentence(states)) == (state, words)


def test_a_component_is_as_the_pools_of_its_routes_are(installation: Installation, acme: Actor) -> None:
    page, (pool, *more) = make_page(acme), pools_behind(acme)
    assert more == []
    assert checkout(page).state == UNKNOWN
    installation.healthy(pool)
    assert checkout(page).state == FINE
    installation.pool(pool, down=False)
    assert checkout(page).state == FINE  # the other servers serve
    installation.verdict("pool", pool.pk, Type.ERRORS_HIGH, True, Reason.MANY_ERRORS)
    assert checkout(page).state == DEGRADED
    installation.verdict("pool", pool.pk, Type.HEALTHY, False, Reason.REGION_WITHOUT_SERVERS)
    assert checkout(page).state == DEGRADED
    installation.pool(pool)
    assert checkout(page).state == MAJOR
    assert shown(page).sentence == "Major outage"


def test_what_no_node_serves_is_unknown_however_well_its_pool_is(installation: Installation, acme: Actor) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    installation.healthy(pool)
    assert checkout(page).state == FINE
    Route.objects.get(account=acme.account, name="shop").load_balancer.fleets.clear()
    assert checkout(page).state == UNKNOWN


def test_what_nobody_looks_at_is_unknown(installation: Installation, acme: Actor) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    installation.healthy(pool)
    assert checkout(page).state == FINE
    for reason in (Reason.NOT_OBSERVED, Reason.UNCHECKED):
        installation.verdict("pool", pool.pk, Type.HEALTHY, None, reason)
        assert checkout(page).state == UNKNOWN
    installation.verdict("pool", pool.pk, Type.ERRORS_HIGH, True, Reason.MANY_ERRORS)
    assert checkout(page).state == DEGRADED, "whoever gets errors needs no check to know"
    installation.verdict("pool", pool.pk, Type.ERRORS_HIGH, False, Reason.FEW_ERRORS)
    installation.healthy(pool)
    installation.watched = False
    installation.tick(0)
    assert (checkout(page).state, shown(page).sentence) == (UNKNOWN, "The state is unknown")


def test_a_route_that_is_gone_is_not_served_or_leads_nowhere_leaves_its_component_unknown(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    installation.healthy(pool)
    row = Route.objects.get(account=acme.account, name="shop")
    verified = row.hostname.verification
    row.hostname.verification = ""
    row.hostname.save()
    assert checkout(page).state == UNKNOWN
    row.hostname.verification = verified
    row.hostname.save()
    assert checkout(page).state == FINE
    row.pools.update(weight=0)
    assert checkout(page).state == UNKNOWN
    row.pools.update(weight=1)
    Route.objects.filter(pk=row.pk).update(name="moved")
    assert checkout(page).state == UNKNOWN


def test_a_name_never_leads_to_another_accounts_route(installation: Installation, acme: Actor, globex: Actor) -> None:
    """Control: the same name in the own account does."""
    pool = make_pool(globex, "secret", "10.9.0.1")
    shop = Route.objects.get(account=acme.account, name="shop")
    stolen = Route.objects.create(
        account=globex.account, name="theirs", load_balancer=shop.load_balancer, hostname=shop.hostname, path="/x",
        action="pools",
    )  # fmt: skip
    stolen.pools.create(pool=pool, weight=1)
    installation.pool(pool)
    with pytest.raises(Invalid) as refusal:
        make_page(acme, components=[{"name": "Theirs", "routes": ["theirs"]}])
    assert refusal.value.field_errors[0].pointer == "/spec/components/0/routes/0"
    page = make_page(acme)
    page.components[0]["routes"] = ["theirs"]  # as if a check had been passed by
    assert checkout(page).state == UNKNOWN
    day(pool, 1, down=60)
    assert checkout(page).bad_days == []
    own = make_page(globex, "globex", components=[{"name": "Own", "routes": ["theirs"]}])
    assert (checkout(own).state, len(checkout(own).bad_days)) == (MAJOR, 1)
    both = components_of([page, own])  # as those ask who look at all pages at once
    assert [both[each.pk][0].pools for each in (page, own)] == [frozenset(), {pool.pk}]


@pytest.mark.parametrize(
    ("spec", "pointer", "code"),
    [
        ({"title": "a<b"}, "/spec/title", "title"),
        ({"title": ""}, "/spec/title", "blank"),
        ({"title": "A\u202eb"}, "/spec/title", "title"),
        ({"components": [{"name": "<i>", "routes": ["shop"]}]}, "/spec/components/0/name", "title"),
        ({"components": [{"name": "A", "routes": []}]}, "/spec/components/0/routes", "missing"),
        ({"components": [{"name": "A", "routes": ["nowhere"]}]}, "/spec/components/0/routes/0", "unknown"),
        ({"components": [{"name": "A", "routes": ["shop"]}] * 2}, "/spec/components/1/name", "twice"),
        ({"components": [{"name": f"A{i}", "routes": ["shop"]} for i in range(31)]}, "/spec/components", "too_many"),
        ({"rules": ["nothing"]}, "/spec/rules/0", "unknown"),
        ({"rules": ["certificate-expiring"]}, "/spec/rules/0", "not_pool"),
        ({"rules": ["node-down"]}, "/spec/rules/0", "not_pool"),
        ({"slug": "x"}, "/spec/slug", "unknown_field"),
    ],
)
def test_a_page_that_could_not_be_shown_is_refused(
    tutorial_env: Actor, acme: Actor, spec: dict[str, Any], pointer: str, code: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        make_page(acme, **spec)
    assert [(each.pointer, each.code) for each in refusal.value.field_errors] == [(pointer, code)]


def test_two_public_pages_never_share_a_name_and_private_ones_tell_nobody_of_theirs(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    make_page(acme, "shop")
    theirs = make_page(globex, "shop", components=[], public=True)  # a private page says nothing of itself
    with pytest.raises(Invalid) as refusal:
        make_page(acme, "shop", public=True)
    assert refusal.value.field_errors[0].code == "taken"
    save_object(actor=globex, kind="StatusPage", name="shop", spec={"title": theirs.title})
    assert make_page(acme, "shop", public=True).public


def test_an_account_has_as_many_pages_as_its_quota_says(tutorial_env: Actor, acme: Actor) -> None:
    for number in range(5):
        make_page(acme, f"page-{number}")
    with pytest.raises(Invalid) as refusal:
        make_page(acme, "one-more")
    assert refusal.value.field_errors[0].code == "quota"


def test_a_document_makes_rule_and_page_at_once(tutorial_env: Actor, acme: Actor) -> None:
    page = {
        "title": "Acme",
        "components": [{"name": "Checkout", "routes": ["shop"]}],
        "rules": ["our-errors"],
    }
    rule = {"watches": "pool_errors", "threshold": 50}
    objects = [
        {"kind": "StatusPage", "name": "acme", "spec": page},
        {"kind": "AlertRule", "name": "our-errors", "spec": rule},
    ]
    for _ in range(2):
        apply_document(actor=acme, objects=objects)
    assert StatusPage.objects.get().version == 1
    assert AlertRule.objects.get().name == "our-errors"


def test_an_incident_goes_from_one_word_to_the_next_and_stands_in_the_audit_log(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    installation.healthy(pool)
    row = services.open_incident(actor=acme, page_id=page.pk, spec=FIRST)
    assert (checkout(page).state, shown(page).open[0].word) == (DEGRADED, "Investigating")
    said = {"text": "Found.", "status": "identified", "impact": "major_outage"}
    services.write_update(actor=acme, incident_id=row.pk, spec=said)
    assert (checkout(page).state, shown(page).open[0].word) == (MAJOR, "Identified")
    services.write_update(actor=acme, incident_id=row.pk, spec={"text": "Done.", "status": "resolved"})
    assert checkout(page).state == FINE
    ((past_day, (past,)),) = shown(page).past
    assert (past_day, past.word) == (row.begins_at.date(), "Resolved")
    assert [each.text for each in past.row.updates.all()] == ["Done.", "Found.", "We look into it."]
    services.write_update(actor=acme, incident_id=row.pk, spec={"text": "Again.", "status": "monitoring"})
    assert shown(page).open[0].word == "Monitoring"
    services.delete_incident(actor=acme, incident_id=row.pk)
    assert not Incident.objects.exists()
    actions = Entry.objects.filter(object_kind="Incident").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["create", "update", "update", "update", "delete"]


def test_maintenance_goes_by_the_clock_and_may_end_early(installation: Installation, acme: Actor) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    installation.healthy(pool)
    spec = FIRST | {"title": "New disks", "begins_at": at(hours=1), "ends_at": at(hours=3)}
    row = services.open_incident(actor=acme, page_id=page.pk, spec=spec)
    moment = now()
    assert (checkout(page).state, shown(page).planned[0].word) == (FINE, "Scheduled")
    during = moment + timedelta(hours=2)
    assert (checkout(page, during).state, shown(page, during).open[0].word) == (WORK, "In progress")
    after = moment + timedelta(hours=4)
    assert (checkout(page, after).state, shown(page, after).past[0][1][0].word) == (FINE, "Completed")
    for faulty in ({"status": "monitoring"}, {"impact": "degraded"}):
        with pytest.raises(Invalid):
            services.write_update(actor=acme, incident_id=row.pk, spec={"text": "x", **faulty})
    services.write_update(actor=acme, incident_id=row.pk, spec={"text": "Quick.", "status": "resolved"})
    assert shown(page, during).open == []
    with pytest.raises(Conflict):
        services.write_update(actor=acme, incident_id=row.pk, spec={"text": "More."})


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"text": ""}, "/spec/text"),
        ({"text": "a\x00b"}, "/spec/text"),
        ({"text": "a\u202eb"}, "/spec/text"),
        ({"text": "a" * 2001}, "/spec/text"),
        ({"text": ["a"]}, "/spec/text"),
        ({"title": "<script>"}, "/spec/title"),
        ({"components": ["Other"]}, "/spec/components/0"),
        ({"components": ["Checkout", "Checkout"]}, "/spec/components"),
        ({"impact": "operational"}, "/spec/impact"),
        ({"impact": "maintenance"}, "/spec/impact"),
        ({"status": "completed"}, "/spec/status"),
        ({"begins_at": "2999-01-01T00:00:00Z"}, "/spec/begins_at"),
        ({"begins_at": "2001-01-01T00:00:00Z"}, "/spec/begins_at"),
        ({"ends_at": "2001-01-01T00:00:00Z", "begins_at": "2000-01-01T00:00:00Z"}, "/spec/ends_at"),
        ({"ends_at": "2100-01-01T00:00:00Z"}, "/spec/begins_at"),
        ({"more": 1}, "/spec/more"),
    ],
)
def test_what_visitors_could_not_read_is_refused(
    tutorial_env: Actor, acme: Actor, spec: dict[str, Any], pointer: str
) -> None:
    page = make_page(acme)
    with pytest.raises(Invalid) as refusal:
        services.open_incident(actor=acme, page_id=page.pk, spec=FIRST | spec)
    assert [each.pointer for each in refusal.value.field_errors] == [pointer]
    assert not Incident.objects.exists()


def test_maintenance_ends_after_it_begins_within_a_month_and_within_a_year(tutorial_env: Actor, acme: Actor) -> None:
    page = make_page(acme)
    faulty = (
        ({"begins_at": at(hours=2), "ends_at": at(hours=1)}, "/spec/ends_at"),
        ({"begins_at": at(hours=2), "ends_at": at(days=31)}, "/spec/ends_at"),
        ({"begins_at": at(days=360), "ends_at": at(days=366)}, "/spec/ends_at"),
        ({"begins_at": at(hours=1), "ends_at": at(hours=2), "impact": "degraded"}, "/spec/impact"),
        ({"begins_at": at(hours=1), "ends_at": at(hours=2), "status": "resolved"}, "/spec/status"),
    )
    for spec, pointer in faulty:
        with pytest.raises(Invalid) as refusal:
            services.open_incident(actor=acme, page_id=page.pk, spec=FIRST | spec)
        assert [each.pointer for each in refusal.value.field_errors] == [pointer]


def test_incidents_and_updates_have_ceilings(tutorial_env: Actor, acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_OPEN", "MOST_UPDATES"):
        monkeypatch.setattr(services, name, 2)
    monkeypatch.setattr(services, "MOST_KEPT", 3)
    page = make_page(acme)
    rows = [services.open_incident(actor=acme, page_id=page.pk, spec=FIRST) for _ in range(2)]
    with pytest.raises(Invalid, match="resolve some"):
        services.open_incident(actor=acme, page_id=page.pk, spec=FIRST)
    services.write_update(actor=acme, incident_id=rows[0].pk, spec={"text": "x", "status": "resolved"})
    with pytest.raises(Invalid, match="at most 2 updates"):
        services.write_update(actor=acme, incident_id=rows[0].pk, spec={"text": "x"})
    third = services.open_incident(actor=acme, page_id=page.pk, spec=FIRST)
    services.write_update(actor=acme, incident_id=third.pk, spec={"text": "x"})
    with pytest.raises(Invalid, match="at most 2 updates"):
        services.write_update(actor=acme, incident_id=third.pk, spec={"text": "x", "status": "monitoring"})
    services.write_update(actor=acme, incident_id=third.pk, spec={"text": "x", "status": "resolved"})
    with pytest.raises(Invalid, match="at most 2 updates"):  # no more than this one
        services.write_update(actor=acme, incident_id=third.pk, spec={"text": "x", "status": "resolved"})
    with pytest.raises(Invalid, match="delete old"):
        services.open_incident(actor=acme, page_id=page.pk, spec=FIRST)
    assert [row.number for row in Incident.objects.order_by("pk")] == [1, 2, 3]


def test_only_editors_of_the_account_write(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    page = make_page(acme)
    row = services.open_incident(actor=acme, page_id=page.pk, spec=FIRST)
    viewer = Actor("v", acme.account, "viewer")
    narrowed = Actor("t", acme.account, "editor", scopes=frozenset({"routes:write"}))
    for actor, refusal in ((globex, NotFound), (viewer, Forbidden), (narrowed, Forbidden)):
        with pytest.raises(refusal):
            services.open_incident(actor=actor, page_id=page.pk, spec=FIRST)
        with pytest.raises(refusal):
            services.write_update(actor=actor, incident_id=row.pk, spec={"text": "x"})
        with pytest.raises(refusal):
            services.delete_incident(actor=actor, incident_id=row.pk)
    assert IncidentUpdate.objects.count() == 1


def test_a_page_asks_as_many_questions_however_much_it_shows(
    installation: Installation, acme: Actor, django_assert_max_num_queries: Any
) -> None:
    parts = [{"name": f"Part {number}", "routes": ["shop"]} for number in range(30)]
    page, (pool,) = make_page(acme, components=parts), pools_behind(acme)
    for back in range(90):
        day(pool, back)
    for number in range(15):
        spec = FIRST | {"components": [f"Part {number}"]}
        row = services.open_incident(actor=acme, page_id=page.pk, spec=spec)
        services.write_update(actor=acme, incident_id=row.pk, spec={"text": "x", "status": "resolved"})
    with django_assert_max_num_queries(9):
        assert len(shown(page).components) == 30


def test_what_is_old_is_forgotten_and_a_deleted_page_takes_its_incidents_along(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme), pools_behind(acme)
    day(pool, 91)
    day(pool, 100)
    services.open_incident(actor=acme, page_id=page.pk, spec=FIRST | {"status": "resolved"})
    days.prune(now())
    services.prune(now())
    assert (PoolDay.objects.count(), Incident.objects.count()) == (1, 1)
    services.prune(now() + timedelta(days=401))
    assert Incident.objects.count() == 0
    services.open_incident(actor=acme, page_id=page.pk, spec=FIRST)
    delete_object(actor=acme, kind="StatusPage", name="acme")
    assert not Incident.objects.exists()
