"""Customers and their quotas, suspension, switching accounts, and impersonating a customer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.choosing import IMPERSONATION
from apps.accounts.models import Account, Invitation, Membership, User
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Pool
from tests.interfaces.people import client_of

REASON = {"reason": "ticket 4711"}
BANNER = "Viewing as Acme (read-only)."


@pytest.fixture
def impersonating(operator: Actor, acme: Actor) -> Client:
    """An operator who impersonates acme."""
    client = client_of(operator, "viewer")
    assert client.post("/accounts/acme/impersonate", REASON, follow=True).status_code == 200
    return client


def test_an_operator_makes_a_customer_and_sets_its_quotas(operator: Actor) -> None:
    client = client_of(operator)
    sent = {"/name": "initech", "/spec/title": "Initech", "/spec/quotas/routes": "7"}
    page = client.post("/new-account", sent, follow=True)
    account = Account.objects.get(name="initech")
    assert (account.kind, account.quotas) == ("customer", {"routes": 7})
    assert "0 of 7" in page.content.decode()
    client.post("/accounts/initech/edit", {"/spec/title": "Initech Ltd", "/spec/quotas/pools": "3", "version": "1"})
    account.refresh_from_db()
    assert (account.title, account.quotas) == ("Initech Ltd", {"pools": 3})
    assert "Initech Ltd" in client.get("/accounts?q=ini").content.decode()
    assert "No customer with this name" in client.get("/accounts?q=zzz").content.decode()


@pytest.mark.parametrize(
    "sent",
    [{"/name": "acme"}, {"/name": "Ini tech"}, {"/spec/title": "<b>"}, {"/spec/quotas/routes": "-1"}, {"/name": ""}],
)
def test_a_refused_account_keeps_what_was_typed(operator: Actor, acme: Actor, sent: dict[str, str]) -> None:
    typed = {"/name": "initech", "/spec/title": "Typed title", "/spec/quotas/routes": "7"} | sent
    answer = client_of(operator).post("/new-account", typed)
    assert answer.status_code == 422
    assert 'class="error"' in answer.content.decode()
    assert not Account.objects.filter(name="initech").exists()


@pytest.mark.parametrize("role", ["admin", "editor", "viewer"])
def test_customers_have_no_pages_of_customers(acme: Actor, globex: Actor, role: str) -> None:
    client = client_of(acme, role)
    for path in ("/accounts", "/new-account", "/accounts/globex", "/accounts/acme/edit", "/accounts/acme/impersonate"):
        assert client.get(path).status_code == client.post(path, REASON).status_code == 404, path
        assert IMPERSONATION not in client.session, path


def test_a_customer_sees_its_own_use_of_its_quotas(acme: Actor) -> None:
    Pool.objects.create(account=acme.account, name="shop")
    for path in ("/account", "/accounts/acme"):
        page = client_of(acme).get(path).content.decode()
        assert "1 of 200" in page
        assert "Suspend" not in page
        assert "View as" not in page


@pytest.mark.parametrize("path", ["edit", "suspend"])
def test_operators_who_only_read_change_no_account(operator: Actor, acme: Actor, path: str) -> None:
    client = client_of(operator, "viewer")
    assert client.post(f"/accounts/acme/{path}", REASON | {"/spec/title": "X"}).status_code == 403
    acme.account.refresh_from_db()
    assert (acme.account.title, acme.account.suspended_at) == ("Acme", None)


def test_a_suspended_account_is_told_so_and_resumed(operator: Actor, acme: Actor) -> None:
    house, client = client_of(operator), client_of(acme)
    assert house.post("/accounts/acme/suspend", {"reason": " "}).status_code == 422
    assert client.get("/people").status_code == 200
    house.post("/accounts/acme/suspend", REASON)
    for path in ("/", "/people", "/routes", "/tokens"):
        answer = client.get(path)
        assert (answer.status_code, "Acme is suspended" in answer.content.decode()) == (403, True)
    assert client.post("/people/invite", {"/email": "a@example.com", "/role": "viewer"}).status_code == 403
    told = Entry.objects.get(object_kind="Account", reason="ticket 4711")
    assert (told.account, told.after and told.after["suspended"]) == (acme.account, True)
    house.post("/accounts/acme/suspend", REASON)
    assert client.get("/people").status_code == 200


def test_the_operator_account_cannot_be_suspended(operator: Actor) -> None:
    assert client_of(operator).post("/accounts/operator/suspend", REASON).status_code == 404
    assert client_of(operator).get("/people").status_code == 200


def test_who_is_in_two_accounts_leaves_the_suspended_one(acme: Actor, globex: Actor) -> None:
    client = client_of(acme)
    Membership.objects.create(user=User.objects.get(), account=globex.account, role="viewer")
    Account.objects.filter(name="acme").update(suspended_at=now())
    assert "Act for Globex" in client.get("/people").content.decode()
    client.post("/switch", {"account": "globex"})
    assert client.get("/people").context["actor"].account == globex.account


def test_impersonating_a_customer_shows_its_pages_and_says_so_on_each(impersonating: Client, acme: Actor) -> None:
    Pool.objects.create(account=acme.account, name="shop")
    for path in ("/", "/routes", "/pools", "/people", "/tokens", "/account"):
        assert BANNER in impersonating.get(path).content.decode(), path
    assert impersonating.get("/pools").context["actor"].account == acme.account
    assert "shop" in impersonating.get("/pools").content.decode()
    for path in ("/fleets", "/accounts", "/regions"):
        assert impersonating.get(path).status_code == 404


def test_impersonating_changes_nothing(impersonating: Client, acme: Actor) -> None:
    pool = Pool.objects.create(account=acme.account, name="shop")
    bob = Membership.objects.create(user=User.objects.create(username="bob"), account=acme.account, role="viewer")
    for path in (f"/pools/{pool.pk}/delete", f"/people/{bob.pk}/remove", "/tokens/new", "/people/invite", "/pools/new"):
        assert impersonating.post(path, {"confirm": "shop", "/name": "x", "/role": "viewer"}).status_code == 403, path
    assert Pool.objects.exists()
    assert Membership.objects.filter(pk=bob.pk).exists()


def test_an_operator_who_is_admin_is_only_a_viewer_while_looking(operator: Actor, acme: Actor) -> None:
    client = client_of(operator)
    client.post("/accounts/acme/impersonate", REASON)
    assert client.get("/people").context["actor"].role == "viewer"
    assert client.get("/people/invite").status_code == 403


def test_both_accounts_read_who_impersonated_and_why(impersonating: Client, acme: Actor, operator: Actor) -> None:
    impersonating.post("/stop-impersonating")
    for account in (acme.account, operator.account):
        found = list(Entry.objects.filter(account=account, object_kind="Account").order_by("id"))
        assert [entry.action for entry in found] == ["impersonate", "stop_impersonating"]
        assert {entry.actor for entry in found} == {"viewer-of-operator"}
        assert found[0].reason == "ticket 4711"
    page = impersonating.get("/people")
    assert BANNER not in page.content.decode()
    assert page.context["actor"].account == operator.account


def test_impersonation_needs_a_reason(operator: Actor, acme: Actor) -> None:
    client = client_of(operator)
    for reason in ("", "  ", "x" * 401, "a\x00b"):
        assert client.post("/accounts/acme/impersonate", {"reason": reason}).status_code == 422
    assert IMPERSONATION not in client.session
    assert not Entry.objects.filter(action="impersonate").exists()


def test_impersonation_ends_after_an_hour_and_the_end_is_recorded(impersonating: Client, operator: Actor) -> None:
    session = impersonating.session
    session[IMPERSONATION] = session[IMPERSONATION] | {"until": (now() - timedelta(seconds=1)).timestamp()}
    session.save()
    assert impersonating.get("/people").context["actor"].account == operator.account
    assert Entry.objects.filter(action="stop_impersonating").count() == 2
    assert IMPERSONATION not in impersonating.session


def test_impersonation_ends_with_the_session(impersonating: Client) -> None:
    impersonating.post("/sign-out")
    assert Entry.objects.filter(action="stop_impersonating").count() == 2


def test_impersonation_ends_with_the_membership_of_the_operator(
    impersonating: Client, acme: Actor, globex: Actor
) -> None:
    Membership.objects.filter(account__kind="operator").delete()
    assert impersonating.get("/people").status_code == 403
    user = User.objects.get(username="viewer-of-operator")
    Membership.objects.create(user=user, account=globex.account, role="admin")
    assert impersonating.get("/people").context["actor"].account == globex.account


def test_a_session_that_claims_to_look_is_worth_nothing_to_a_customer(acme: Actor, globex: Actor) -> None:
    client = client_of(globex)
    session = client.session
    until = (now() + timedelta(hours=1)).timestamp()
    session[IMPERSONATION] = {"account": acme.account.pk, "until": until, "operator": globex.account.pk}
    session["account"] = acme.account.pk
    session.save()
    assert client.get("/people").context["actor"].account == globex.account


def test_a_suspended_account_can_still_be_looked_at(operator: Actor, acme: Actor) -> None:
    Account.objects.filter(name="acme").update(suspended_at=now())
    client = client_of(operator)
    client.post("/accounts/acme/impersonate", REASON)
    assert client.get("/people").status_code == 200


def browser_of(user: User) -> Client:
    """As `client_of`, with forms that need their token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    return client


def form_of(client: Client, path: str) -> dict[str, str]:
    """The form of a page as it stands open in a tab, empty."""
    return {"csrfmiddlewaretoken": str(client.get(path).context["csrf_token"])}


INVITED = {"/email": "ann@example.com", "/role": "viewer"}


def with_an_open_form(acme: Actor, globex: Actor, *, at_once: bool = True) -> tuple[Client, dict[str, str]]:
    """Somebody of acme, and at once of globex too, with the form open that invites people to acme."""
    client_of(acme)
    user = User.objects.get()
    if at_once:
        Membership.objects.create(user=user, account=globex.account, role="admin")
    client = browser_of(user)
    return client, form_of(client, "/people/invite")


def test_a_form_that_stood_open_while_its_person_switched_accounts_does_nothing_in_the_other(
    acme: Actor, globex: Actor
) -> None:
    client, of_acme = with_an_open_form(acme, globex)
    client.post("/switch", form_of(client, "/people") | {"account": "globex"})
    page = client.post("/people/invite", of_acme | INVITED)
    assert (page.status_code, Invitation.objects.count()) == (403, 0)
    assert "switched accounts in another tab" in page.content.decode()
    assert client.post("/people/invite", form_of(client, "/people/invite") | INVITED).status_code == 200
    assert Invitation.objects.get().account == globex.account


def test_a_form_of_the_only_account_that_one_was_in_does_nothing_in_the_next_one(acme: Actor, globex: Actor) -> None:
    client, of_acme = with_an_open_form(acme, globex, at_once=False)
    user = User.objects.get()
    Membership.objects.get(account=acme.account).delete()
    Membership.objects.create(user=user, account=globex.account, role="admin")
    page = client.post("/people/invite", of_acme | INVITED)
    assert (page.status_code, Invitation.objects.count()) == (403, 0)


@pytest.mark.parametrize("looked", [False, True])
def test_a_form_of_an_account_that_one_was_taken_out_of_does_nothing_in_another(
    acme: Actor, globex: Actor, looked: bool
) -> None:
    client, of_acme = with_an_open_form(acme, globex)
    Membership.objects.get(account=acme.account).delete()
    if looked:
        assert client.get("/people").context["actor"].account == globex.account
    page = client.post("/people/invite", of_acme | INVITED)
    said = "This form has expired" if looked else "You are no longer a member of the account that this form is of."
    assert (page.status_code, said in page.content.decode()) == (403, True)
    assert client.post("/people/invite", of_acme | INVITED).status_code == 403
    assert not Invitation.objects.exists()
    assert client.post("/people/invite", form_of(client, "/people/invite") | INVITED).status_code == 200
    assert Invitation.objects.get().account == globex.account
