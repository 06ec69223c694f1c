"""Hostnames: who has one, what verifies it, what that sets free, and the cooldown of a released one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.hostnames import verification
from apps.accounts.models import Grant, Hostname
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, Stale
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Route
from apps.definitions.services import delete_object, save_object
from apps.definitions.writing.kinds import hostnames
from apps.fleet.models import Fleet
from tests.e2e.name_server import name_server

pytestmark = pytest.mark.django_db


def route(hostname: str, path: str = "/") -> dict[str, object]:
    """A route that needs no pool."""
    return {"load_balancer": "front", "hostname": hostname, "path": path, "action": {"fixed_response": {"status": 200}}}


def served() -> set[str]:
    """Names of the hosts that the nodes of the first fleet serve."""
    snapshot = snapshot_of(Fleet.objects.order_by("id")[0])
    return {each.hostname for balancer in snapshot.load_balancers for each in balancer.routes}


def verified(actor: Actor, name: str) -> Hostname:
    """A claim whose TXT record was found."""
    claim = hostnames.claim(actor=actor, name=name)
    Hostname.objects.filter(pk=claim.pk).update(verification="dns")
    return claim


def verifiable(actor: Actor, name: str) -> bool:
    """Whether the account's claim is verified once its TXT record stands there."""
    claim = hostnames.claim(actor=actor, name=name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "look", lambda _: verification.Finding("dns", "It is there."))
        Hostname.objects.filter(pk=claim.pk).update(checked_at=None)
        return bool(hostnames.check(actor=actor, hostname_id=claim.pk).verification)


def rest_of_a_week(name: str) -> None:
    """As if the name had been released eight days ago."""
    Hostname.objects.filter(name=name).update(released_at=now() - timedelta(days=8))


def test_routes_of_a_name_without_verification_are_kept_and_not_served(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="blog", spec=route("blog.example.org"))
    assert Route.objects.filter(name="blog").exists()
    assert "blog.example.org" not in served()


def test_a_verification_makes_them_live_and_wants_a_push_of_their_fleets(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="blog", spec=route("blog.example.org"))
    before = dict(Fleet.objects.values_list("name", "desired_generation"))
    claim = Hostname.objects.get(name="blog.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=claim.pk, reason="Known")
    assert "blog.example.org" in served()
    after = dict(Fleet.objects.values_list("name", "desired_generation"))
    assert all(after[name] > number for name, number in before.items())
    assert Entry.objects.filter(object_kind="Hostname", action="verify", reason="Known").count() == 1


def test_a_route_that_an_operator_saves_verifies_its_name(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="blog", spec=route("blog.example.org"))
    save_object(actor=tutorial_env, kind="Route", name="two", account="acme", spec=route("blog.example.org", "/two"))
    assert "blog.example.org" in served()


def test_a_verified_wildcard_verifies_the_names_under_it_before_and_after(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="early", spec=route("early.example.org"))
    claim = hostnames.claim(actor=acme, name="*.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=claim.pk, reason="Known")
    save_object(actor=acme, kind="Route", name="late", spec=route("late.example.org"))
    assert {"early.example.org", "late.example.org"} <= served()


def test_a_verified_name_does_not_verify_its_neighbours(tutorial_env: Actor, acme: Actor) -> None:
    claim = hostnames.claim(actor=acme, name="www.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=claim.pk, reason="Known")
    assert hostnames.claim(actor=acme, name="other.example.org").verification == ""


def test_a_grant_verifies_names_of_its_domain_and_no_others(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    hostnames.claim(actor=tutorial_env, name="*.apps.example.net")
    Grant.objects.create(name="acme-apps", account=acme.account, hostname="acme.apps.example.net")
    assert hostnames.claim(actor=acme, name="acme.apps.example.net").verification == "grant"
    assert hostnames.claim(actor=globex, name="globex.apps.example.net").verification == ""
    Grant.objects.create(name="old", account=globex.account, hostname="*.apps.example.net", expires_at=now())
    assert hostnames.claim(actor=globex, name="globex.apps.example.net").verification == ""


def test_the_last_route_of_a_verified_name_leaves_the_claim_where_it_is(tutorial_env: Actor, globex: Actor) -> None:
    save_object(actor=tutorial_env, kind="Route", name="one", account="acme", spec=route("blog.example.org"))
    delete_object(actor=tutorial_env, kind="Route", name="one", account="acme")
    assert not verifiable(globex, "blog.example.org")


def test_a_claim_made_by_itself_outlives_its_routes(tutorial_env: Actor, acme: Actor) -> None:
    hostnames.claim(actor=acme, name="blog.example.org")
    save_object(actor=acme, kind="Route", name="blog", spec=route("blog.example.org"))
    delete_object(actor=acme, kind="Route", name="blog")
    assert Hostname.objects.filter(name="blog.example.org").exists()


def test_a_released_name_rests_and_only_its_last_owner_can_have_it(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    claim = verified(acme, "blog.example.org")
    hostnames.release(actor=acme, hostname_id=claim.pk)
    assert not verifiable(globex, "blog.example.org")
    assert hostnames.claim(actor=acme, name="blog.example.org").released_at is None
    hostnames.release(actor=acme, hostname_id=claim.pk)
    rest_of_a_week("blog.example.org")
    mine = hostnames.claim(actor=globex, name="blog.example.org")
    assert mine.challenge != claim.challenge  # nothing that the former owner set verifies anything
    assert mine.verification == ""
    assert verifiable(globex, "blog.example.org")
    assert list(Hostname.objects.filter(name="blog.example.org")) == [mine]


def test_a_released_wildcard_keeps_names_under_it_until_it_has_rested(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    claim = verified(acme, "*.example.org")
    hostnames.release(actor=acme, hostname_id=claim.pk)
    assert not verifiable(globex, "blog.example.org")
    rest_of_a_week("*.example.org")
    assert verifiable(globex, "blog.example.org")


def test_an_operator_ends_the_rest(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    claim = verified(acme, "blog.example.org")
    with pytest.raises(Conflict):
        hostnames.end_cooldown(actor=tutorial_env, hostname_id=claim.pk)
    hostnames.release(actor=acme, hostname_id=claim.pk)
    with pytest.raises(Forbidden):
        hostnames.end_cooldown(actor=acme, hostname_id=claim.pk)
    hostnames.end_cooldown(actor=tutorial_env, hostname_id=claim.pk)
    assert hostnames.claim(actor=globex, name="blog.example.org").account == globex.account


def test_an_operator_gives_away_a_name_that_nobody_routes_and_no_other(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    hostnames.claim(actor=acme, name="blog.example.org")
    moved = hostnames.claim(actor=tutorial_env, name="blog.example.org", account="globex")
    assert (moved.account, moved.verification) == (globex.account, "operator")
    with pytest.raises(Invalid):
        hostnames.claim(actor=tutorial_env, name="shop.acme.example", account="globex")


def test_a_name_that_routes_use_is_not_released(tutorial_env: Actor, acme: Actor) -> None:
    claim = Hostname.objects.get(name="shop.acme.example")
    with pytest.raises(Conflict, match="in use by"):
        hostnames.release(actor=acme, hostname_id=claim.pk)
    claim.refresh_from_db()
    assert claim.released_at is None


def test_a_release_of_an_older_version_is_refused(tutorial_env: Actor, acme: Actor) -> None:
    claim = hostnames.claim(actor=acme, name="blog.example.org")
    with pytest.raises(Stale):
        hostnames.release(actor=acme, hostname_id=claim.pk, expected_version=claim.version + 1)


def test_viewers_claim_nothing(tutorial_env: Actor, acme: Actor) -> None:
    viewer = Actor("eve", acme.account, "viewer")
    with pytest.raises(Forbidden):
        hostnames.claim(actor=viewer, name="blog.example.org")


def test_waiting_claims_are_looked_at_ever_more_seldom_and_given_up_after_two_weeks(
    tutorial_env: Actor, acme: Actor
) -> None:
    claim = hostnames.claim(actor=acme, name="blog.example.org")
    moment = claim.created_at

    def due_after(age: timedelta, since_last_look: timedelta | None) -> bool:
        checked = None if since_last_look is None else moment + age - since_last_look
        Hostname.objects.filter(pk=claim.pk).update(checked_at=checked)
        return claim.pk in hostnames.due(moment + age)

    assert due_after(timedelta(0), None)
    assert not due_after(timedelta(minutes=5), timedelta(seconds=59))
    assert due_after(timedelta(minutes=5), timedelta(minutes=3))
    assert not due_after(timedelta(hours=10), timedelta(hours=2))
    assert due_after(timedelta(days=5), timedelta(hours=6))
    assert not due_after(timedelta(days=14), timedelta(days=1))
    hostnames.sweep(moment + timedelta(days=15))
    assert not Hostname.objects.filter(pk=claim.pk).exists()


def test_a_waiting_claim_with_routes_is_not_forgotten(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="blog", spec=route("blog.example.org"))
    hostnames.sweep(now() + timedelta(days=15))
    assert Route.objects.filter(name="blog").exists()


def test_a_verified_name_is_looked_at_once_a_day(tutorial_env: Actor, acme: Actor) -> None:
    claim = hostnames.claim(actor=acme, name="blog.example.org")
    Hostname.objects.filter(pk=claim.pk).update(verification="dns", checked_at=now())
    assert claim.pk not in hostnames.due(now() + timedelta(hours=23))
    assert claim.pk in hostnames.due(now() + timedelta(hours=25))
    Hostname.objects.filter(pk=claim.pk).update(verification="operator")
    assert claim.pk not in hostnames.due(now() + timedelta(hours=25))


def test_the_token_of_another_claim_verifies_nothing(settings: Settings) -> None:
    claim = Hostname(name="*.acme.example", challenge="mine")
    with name_server() as server:
        settings.RESOLVERS = [server.address]
        server.records[verification.txt_name(claim.name)] = [verification.txt_value("another")]
        assert verification.look(claim).verification == ""
        server.records[verification.txt_name(claim.name)].append(verification.txt_value("mine"))
        assert verification.look(claim).verification == "dns"


# Claims that nobody verified


def test_a_wildcard_that_nobody_verified_keeps_nobody_out(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    hostnames.claim(actor=acme, name="*.example.org")
    claim = hostnames.claim(actor=globex, name="shop.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=claim.pk, reason="Known")
    save_object(actor=globex, kind="Route", name="shop", spec=route("shop.example.org"))
    assert "shop.example.org" in served()


def test_one_that_is_verified_does(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    wildcard = hostnames.claim(actor=acme, name="*.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=wildcard.pk, reason="Known")
    assert not verifiable(globex, "shop.example.org")


def test_a_claim_of_the_very_same_name_keeps_nobody_out_who_verifies_it(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    save_object(actor=acme, kind="Route", name="squat", spec=route("shop.example.org"))
    save_object(actor=globex, kind="Route", name="real", spec=route("shop.example.org"))
    assert "shop.example.org" not in served()
    assert verifiable(globex, "shop.example.org")
    fronts = snapshot_of(Fleet.objects.order_by("id")[0]).load_balancers
    routes = [each.label for front in fronts for each in front.routes if each.hostname == "shop.example.org"]
    assert routes == ["globex/real"]
    assert not verifiable(acme, "shop.example.org")


def test_of_two_that_wait_the_one_that_is_verified_first_keeps_the_other_waiting(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    wildcard = hostnames.claim(actor=acme, name="*.example.org")
    name = hostnames.claim(actor=globex, name="shop.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=name.pk, reason="Known")
    with pytest.raises(Conflict):
        hostnames.verify(actor=tutorial_env, hostname_id=wildcard.pk, reason="Known")
    assert Hostname.objects.get(pk=wildcard.pk).verification == ""


def test_a_verification_that_meets_a_verified_claim_says_so_and_nothing_else(
    tutorial_env: Actor, acme: Actor, globex: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    wildcard = hostnames.claim(actor=acme, name="*.example.org")
    name = hostnames.claim(actor=globex, name="shop.example.org")
    hostnames.verify(actor=tutorial_env, hostname_id=name.pk, reason="Known")
    monkeypatch.setattr(verification, "look", lambda _: verification.Finding("dns", "It is there."))
    found = hostnames.check(actor=acme, hostname_id=wildcard.pk)
    assert (found.verification, found.last_check_message) == ("", hostnames.KEPT)
    assert "globex" not in found.last_check_message.lower()


def test_a_claim_that_nobody_verified_does_not_rest(tutorial_env: Actor, acme: Actor, globex: Actor) -> None:
    claim = hostnames.claim(actor=acme, name="free.example.org")
    hostnames.release(actor=acme, hostname_id=claim.pk)
    assert hostnames.claim(actor=globex, name="free.example.org").account == globex.account
    assert Entry.objects.filter(object_kind="Hostname", action="release").count() == 1


@pytest.mark.parametrize("name", ["co.uk", "*.co.uk", "*.github.io", "foo.ck", "*.kawasaki.jp"])
def test_public_suffixes_are_nobodys(tutorial_env: Actor, acme: Actor, name: str) -> None:
    with pytest.raises(Invalid) as caught:
        hostnames.claim(actor=acme, name=name)
    assert [field_error.code for field_error in caught.value.field_errors] == ["public_suffix"]
    with pytest.raises(Invalid):
        save_object(actor=acme, kind="Route", name="all", spec=route(name))
    assert not Hostname.objects.filter(name=name).exists()


@pytest.mark.parametrize("name", ["shop.co.uk", "*.shop.co.uk", "acme.github.io", "city.kawasaki.jp"])
def test_names_below_them_may_be_claimed(acme: Actor, name: str) -> None:
    assert hostnames.claim(actor=acme, name=name).name == name


def test_an_operator_whose_domain_is_listed_may_have_it(tutorial_env: Actor) -> None:
    assert hostnames.claim(actor=tutorial_env, name="*.github.io").verification == "operator"
