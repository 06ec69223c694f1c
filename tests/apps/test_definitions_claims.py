"""A hostname belongs to the first account that verifies it, whatever is tried at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import chain

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.accounts.hostnames import claims
from apps.accounts.hostnames.claims import (
    HostnameTaken,
    claim_hostname,
    claim_or_find,
    claim_unclaimed,
    unclaimed,
    verify_hostname,
    wildcards_over,
)
from apps.accounts.models import Account, Hostname
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import LoadBalancer
from apps.definitions.services import apply_document, delete_object, save_object
from tests.apps.at_once import PATIENCE_S, at_once, wait_for

WORKERS = 16


def route(hostname: str, path: str = "/") -> dict[str, object]:
    """A route that needs no pool."""
    return {"load_balancer": "front", "hostname": hostname, "path": path, "action": {"fixed_response": {"status": 200}}}


def claims_at_once(names: list[str], verification: str = "") -> list[bool]:
    """Each name claimed by an account of its own, all at the same time; True where the claim is the account's."""
    accounts = [Account.objects.create(name=f"a{number}", title="A", kind="customer") for number in range(len(names))]

    def claim(number: int) -> tuple[int, bool]:
        try:
            with transaction.atomic():
                found = claim_hostname(account=accounts[number], name=names[number], verification=verification)
        except HostnameTaken:
            return number, False
        return number, found.verification == verification

    def work(first: int) -> list[tuple[int, bool]]:
        return [claim(number) for number in range(first, len(names), WORKERS)]

    return [won for _, won in sorted(chain(*at_once(*(partial(work, first) for first in range(WORKERS)))))]


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("racers", [20, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_of_many_racing_claims_of_one_hostname_exactly_one_wins(racers: int) -> None:
    won = claims_at_once(["race.example.com"] * racers, verification="dns")
    assert (len(won), won.count(True)) == (racers, 1)
    assert Hostname.objects.get().account.name == f"a{won.index(True)}"


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_claims_that_nobody_verified_keep_nobody_out_of_the_very_same_name() -> None:
    assert claims_at_once(["race.example.com"] * 20).count(True) == 20
    assert Hostname.objects.filter(name="race.example.com", verification="").count() == 20


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("racers", [20, pytest.param(40, marks=pytest.mark.exhaustive)])
def test_a_wildcard_and_names_under_it_that_are_verified_and_race_end_with_one_owner(racers: int) -> None:
    won = claims_at_once(["*.example.com", "a.example.com"] * (racers // 2), verification="dns")
    assert any(won)
    names = {claim.name: claim.account_id for claim in Hostname.objects.all()}
    assert len(set(names.values())) == 1


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_racing_claims_of_different_hostnames_all_win() -> None:
    assert claims_at_once([f"n{number}.example{number}.com" for number in range(20)]).count(True) == 20


def claim_of_a_document(*, account: Account, name: str, verification: str) -> Hostname:
    """As the routes of a document claim their names, which were looked up together before."""
    claimed = claim_unclaimed if name in unclaimed([name]) else claim_or_find
    return claimed(account=account, name=name, verification=verification).row


def owners_of_two_claims_that_pass_each_other(claim: Callable[..., Hostname]) -> int:
    """How many accounts own a wildcard and a name under it after two transactions that look before either commits."""
    accounts = [Account.objects.create(name=f"b{number}", title="B", kind="customer") for number in range(2)]
    first_has_claimed, second_is_done = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            claim_hostname(account=accounts[0], name="*.passing.example", verification="dns")
            first_has_claimed.set()
            wait_for(second_is_done)

    def second() -> None:
        first_has_claimed.wait(PATIENCE_S)
        try:
            with transaction.atomic():
                claim(account=accounts[1], name="a.passing.example", verification="dns")
        except HostnameTaken:
            pass
        second_is_done.set()

    at_once(first, second)
    return Hostname.objects.values("account").distinct().count()


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("claim", [claim_hostname, claim_of_a_document])
def test_a_wildcard_and_a_name_under_it_cannot_pass_each_other(claim: Callable[..., Hostname]) -> None:
    assert owners_of_two_claims_that_pass_each_other(claim) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("claim", [claim_hostname, claim_of_a_document])
def test_without_the_lock_they_would_pass_each_other(
    claim: Callable[..., Hostname], monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time: there is no lock to take away")
    monkeypatch.setattr("apps.accounts.hostnames.claims.lock_words", list)
    assert owners_of_two_claims_that_pass_each_other(claim) == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given_up", "taken"), [("shop.example.org", "*.example.org"), ("*.example.org", "shop.example.org")]
)
def test_a_name_that_was_given_up_is_verified_no_more_where_others_verified_what_it_meets(
    tutorial_env: Actor, acme: Actor, globex: Actor, given_up: str, taken: str
) -> None:
    before = claim_hostname(account=acme.account, name=given_up, verification="dns")
    Hostname.objects.filter(pk=before.pk).update(released_at=now() - claims.COOLDOWN)
    assert claim_hostname(account=globex.account, name=taken, verification="dns").verification == "dns"
    again = claim_hostname(account=acme.account, name=given_up)
    assert (again.pk, again.released_at, again.verification) == (before.pk, None, "")


def test_wildcards_over_a_name_stop_before_the_top_level() -> None:
    assert wildcards_over("a.b.c.example") == ["*.b.c.example", "**.b.c.example", "*.c.example", "**.c.example"]
    assert wildcards_over("*.b.c.example") == ["**.b.c.example", "*.c.example", "**.c.example"]
    assert wildcards_over("*") == []
    assert wildcards_over("c.example") == []


@pytest.mark.parametrize("hostname", ["shop.acme.example", "*.acme.example", "nobodys.example.com"])
def test_a_claim_does_not_tell_whether_somebody_has_the_name(tutorial_env: Actor, globex: Actor, hostname: str) -> None:
    made = save_object(actor=globex, kind="Route", name="mine", spec=route(hostname))
    claim = Hostname.objects.get(account=globex.account, name=hostname)
    assert (made.hostname_id, claim.verification, claim.last_check_message) == (claim.pk, "", "")


def test_with_a_look_at_claims_that_wait_they_would_keep_others_out(
    acme: Actor, globex: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(account: Account, name: str, *, verification: str = "") -> bool:
        return Hostname.objects.filter(name=name).exclude(account=account).exists()

    for patched in (False, True):
        name = f"{patched}.example.com".lower()
        claim_hostname(account=acme.account, name=name)
        if patched:
            monkeypatch.setattr(claims, "is_kept_by_others", kept)
        mine = claim_hostname(account=globex.account, name=name)
        verify_hostname(mine, "dns")
        assert (mine.verification == "") is patched


@pytest.mark.parametrize(
    "hostname", ["new.acme.example", "deep.new.acme.example", "*.new.acme.example", "**.new.acme.example"]
)
@pytest.mark.parametrize("wildcard", ["*.acme.example", "**.acme.example"])
def test_names_under_a_wildcard_belong_to_its_owner(
    tutorial_env: Actor, acme: Actor, globex: Actor, wildcard: str, hostname: str
) -> None:
    save_object(actor=tutorial_env, kind="Route", name="all", account="acme", spec=route(wildcard))
    save_object(actor=globex, kind="Route", name="steal", spec=route(hostname))
    save_object(actor=acme, kind="Route", name="own", spec=route(hostname))
    found = Hostname.objects.filter(name=hostname).values_list("account__name", "verification")
    assert dict(found) == {"globex": "", "acme": "operator"}


@pytest.mark.parametrize(("first", "second"), [("*.x.example", "**.x.example"), ("a.b.x.example", "**.x.example")])
def test_a_suffix_that_meets_a_verified_name_of_another_account_is_not_verified(
    acme: Actor, globex: Actor, first: str, second: str
) -> None:
    for mine, others in ((first, second), (second, first)):
        Hostname.objects.all().delete()
        verify_hostname(claim_hostname(account=acme.account, name=mine), "dns")
        claim = claim_hostname(account=globex.account, name=others)
        assert verify_hostname(claim, "dns") == []
        assert claim.verification == ""


@pytest.mark.parametrize(
    "claims_made",
    [
        [("acme", "new.example.com"), ("acme", "other.example.com")],
        [("acme", "same.example.com"), ("globex", "same.example.com")],
        [("acme", "*.example.com"), ("globex", "under.example.com"), ("acme", "own.example.com")],
        [("globex", "under.example.com"), ("acme", "**.example.com"), ("globex", "two.under.example.com")],
        [("acme", "taken.example.net"), ("acme", "free.example.net")],
        [("acme", "x.zone.example.net"), ("acme", "free.example.net")],
    ],
    ids=["new", "two owners", "wildcard first", "wildcard later", "taken", "under another's wildcard"],
)
def test_the_names_of_a_document_are_claimed_as_if_its_routes_came_one_by_one(
    tutorial_env: Actor, acme: Actor, globex: Actor, claims_made: list[tuple[str, str]]
) -> None:
    """Of a document all names are looked up at once; what was taken before, or in it, is nobody else's all the same."""
    for taken in ("taken.example.net", "*.zone.example.net"):
        verify_hostname(claim_hostname(account=globex.account, name=taken), "dns")
    objects = [
        {"kind": "Route", "name": f"r{at}", "account": account, "spec": route(hostname)}
        for at, (account, hostname) in enumerate(claims_made)
    ]

    def outcome(write: Callable[[], object]) -> tuple[list[str], list[tuple[str, str, str]]]:
        codes: list[str] = []
        with transaction.atomic():
            try:
                write()
            except Invalid as refusal:
                codes = [each.code for each in refusal.field_errors]
            rows = list(
                Hostname.objects.order_by("name", "account").values_list("name", "account__name", "verification")
            )
            transaction.set_rollback(True)
        return codes, [] if codes else rows

    def one_by_one() -> None:
        for each in objects:
            apply_document(actor=tutorial_env, objects=[each])

    assert outcome(lambda: apply_document(actor=tutorial_env, objects=objects)) == outcome(one_by_one)


def test_without_forgetting_what_a_wildcard_meets_two_accounts_would_have_a_name(
    tutorial_env: Actor, acme: Actor, globex: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = [
        {"kind": "Route", "name": f"r{at}", "account": account, "spec": route(hostname)}
        for at, (account, hostname) in enumerate([("acme", "*.example.com"), ("globex", "under.example.com")])
    ]
    with pytest.raises(Invalid, match="Another account has verified"):
        apply_document(actor=tutorial_env, objects=objects)
    monkeypatch.setattr("apps.definitions.writing.kinds.routes.is_wildcard", lambda _: False)
    apply_document(actor=tutorial_env, objects=objects)
    assert {each.verification for each in Hostname.objects.filter(name__endswith="example.com")} == {"operator"}


def test_a_document_asks_once_for_all_of_its_new_names(tutorial_env: Actor, acme: Actor) -> None:
    objects = [{"kind": "Route", "name": f"r{at}", "spec": route(f"h{at}.example.com")} for at in range(40)]
    with CaptureQueriesContext(connection) as queries:
        apply_document(actor=acme, objects=objects)
    asked = [each["sql"] for each in queries if each["sql"].startswith("SELECT") and "accounts_hostname" in each["sql"]]
    assert len(asked) < 10


def test_any_host_is_for_the_account_that_owns_the_load_balancer(tutorial_env: Actor, acme: Actor) -> None:
    for account in (None, "acme"):
        actor = tutorial_env if account else acme
        with pytest.raises(Invalid) as refusal:
            save_object(actor=actor, kind="Route", name="all", account=account, spec=route("*"))
        assert [each.code for each in refusal.value.field_errors] == ["any_host"]
    assert not Hostname.objects.filter(name="*").exists()
    owner = LoadBalancer.objects.get(name="front").account.name
    action = {"fixed_response": {"status": 204}}
    save_object(actor=tutorial_env, kind="Route", name="all", account=owner, spec=route("*") | {"action": action})
    assert Hostname.objects.get(name="*").verification == "operator"
    verify_hostname(claim_hostname(account=acme.account, name="any.acme.example"), "dns")
    assert Hostname.objects.get(name="any.acme.example").verification == "dns"


def test_the_last_route_of_a_hostname_gives_the_claim_up(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="one", spec=route("free.example.com"))
    save_object(actor=acme, kind="Route", name="two", spec=route("free.example.com", "/two"))
    delete_object(actor=acme, kind="Route", name="one")
    assert Hostname.objects.filter(name="free.example.com").exists()
    delete_object(actor=acme, kind="Route", name="two")
    assert not Hostname.objects.filter(name="free.example.com").exists()


def test_a_route_that_moves_to_another_hostname_gives_the_old_one_up(tutorial_env: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Route", name="one", spec=route("old.example.com"))
    save_object(actor=acme, kind="Route", name="one", spec=route("new.example.com"))
    assert not Hostname.objects.filter(name="old.example.com").exists()
