"""Memberships and invitations, with versions, and nothing of other accounts."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import ApiToken, Invitation, Membership, User
from apps.members import invitations
from tests.interfaces.api.test_api_objects import Api, assert_problem


def member(actor: Actor, name: str, role: str) -> Membership:
    """One more person in the actor's account."""
    return Membership.objects.create(user=User.objects.create(username=name), account=actor.account, role=role)


@pytest.fixture
def bob(acme: Actor) -> Membership:
    """A viewer of acme."""
    return member(acme, "bob", "viewer")


def test_a_role_is_changed_with_the_version_that_was_seen(acme: Actor, bob: Membership) -> None:
    api, url = Api(acme), f"memberships/{bob.pk}"
    seen = api("GET", url)
    assert (seen.json()["role"], seen["ETag"]) == ("viewer", '"rev-1"')
    assert_problem(api("PATCH", url, {"role": "editor"}), 428)
    changed = api("PATCH", url, {"role": "editor"}, If_Match=seen["ETag"])
    assert (changed.status_code, changed.json()["role"], changed["ETag"]) == (200, "editor", '"rev-2"')
    assert_problem(api("PATCH", url, {"role": "owner"}, If_Match=seen["ETag"]), 412)
    assert changed.json() == api("GET", url).json()
    assert api("GET", url, If_None_Match='"rev-2"').status_code == 304


@pytest.mark.parametrize("body", [{}, {"role": "admin"}, {"role": "operator"}, {"role": 1}, {"role": "owner", "id": 1}])
def test_what_is_no_role_of_a_customer_is_refused(acme: Actor, bob: Membership, body: dict[str, object]) -> None:
    assert_problem(Api(acme)("PATCH", f"memberships/{bob.pk}", body, If_Match="*"), 422)
    bob.refresh_from_db()
    assert bob.role == "viewer"


def test_a_person_is_taken_out_but_not_the_last_owner(acme: Actor, bob: Membership) -> None:
    api, owner = Api(acme), member(acme, "olga", "admin")
    assert_problem(api("DELETE", f"memberships/{bob.pk}"), 428)
    assert api("DELETE", f"memberships/{bob.pk}", If_Match="*").status_code == 204
    assert_problem(api("DELETE", f"memberships/{bob.pk}", If_Match="*"), 404)
    assert "last owner" in assert_problem(api("DELETE", f"memberships/{owner.pk}", If_Match="*"), 409)["detail"]
    assert_problem(api("PATCH", f"memberships/{owner.pk}", {"role": "viewer"}, If_Match="*"), 409)


def test_customers_see_and_change_only_their_own_people(acme: Actor, globex: Actor, bob: Membership) -> None:
    api = Api(globex)
    assert api("GET", "memberships").json()["items"] == []
    for method, body in (("GET", None), ("PATCH", {"role": "owner"}), ("DELETE", None)):
        foreign = assert_problem(api(method, f"memberships/{bob.pk}", body, If_Match="*"), 404)
        missing = assert_problem(api(method, "memberships/999999", body, If_Match="*"), 404)
        assert foreign["detail"] == missing["detail"]


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_only_owners_change_people_and_invite(acme: Actor, bob: Membership, role: str) -> None:
    api = Api(Actor("x", acme.account, role))
    assert api("GET", "memberships").status_code == 200
    assert_problem(api("PATCH", f"memberships/{bob.pk}", {"role": "owner"}, If_Match="*"), 403)
    assert_problem(api("DELETE", f"memberships/{bob.pk}", If_Match="*"), 403)
    assert_problem(api("POST", "invitations", {"email": "a@example.com", "role": "viewer"}), 403)


def test_an_invitation_is_made_with_a_link_listed_without_it_and_taken_back(acme: Actor) -> None:
    api = Api(acme)
    made = api("POST", "invitations", {"email": "ann@example.com", "role": "owner"})
    link = made.json()["link"]
    assert (made.status_code, made["Cache-Control"], made.json()["role"]) == (201, "no-store", "owner")
    assert Client().get(link).status_code == 200
    url = made["Location"].removeprefix("/api/v1/")
    shown = api("GET", url).json()
    assert shown == {name: value for name, value in made.json().items() if name != "link"}
    assert api("GET", "invitations").json()["items"] == [shown]
    assert_problem(api("POST", "invitations", {"email": "ANN@example.com", "role": "viewer"}), 409)
    assert_problem(api("DELETE", url, If_Match='"rev-2"'), 412)
    assert api("DELETE", url).status_code == 204
    assert Client().get(link).status_code == 404
    assert api("GET", "invitations").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/email"),
        ({"email": "ann"}, "/email"),
        ({"email": ["ann@example.com"]}, "/email"),
        ({"email": "ann@example.com\n"}, "/email"),
        ({"role": "admin"}, "/role"),
        ({"account": "globex"}, "/account"),
        ({"mail": "yes"}, "/mail"),
        ({"digest": "0"}, "/digest"),
    ],
)
def test_what_is_wrong_with_an_invitation_is_named(acme: Actor, body: dict[str, object], pointer: str) -> None:
    sent = {"email": "ann@example.com", "role": "viewer"} | body if body else {}
    answer = assert_problem(Api(acme)("POST", "invitations", sent), 422)
    assert pointer in {field_error["pointer"] for field_error in answer["errors"]}
    assert not Invitation.objects.exists()


def test_a_token_that_is_narrowed_gives_nobody_a_role_that_writes_more_than_it_does(
    acme: Actor, bob: Membership
) -> None:
    api, url = Api(acme), f"memberships/{bob.pk}"
    sent = {"email": "ann@example.com", "role": "editor"}
    ApiToken.objects.update(scopes=["invitations:write", "memberships:write"])
    for answer in (api("POST", "invitations", sent), api("PATCH", url, {"role": "owner"}, If_Match="*")):
        assert assert_problem(answer, 422)["errors"][0]["code"] == "more_than_own"
    assert api("POST", "invitations", sent | {"role": "viewer"}).status_code == 201
    ApiToken.objects.update(scopes=["*:write"])
    assert api("PATCH", url, {"role": "owner"}, If_Match="*").status_code == 200


def test_an_installation_without_mail_says_so(acme: Actor) -> None:
    sent = {"email": "ann@example.com", "role": "viewer", "mail": True}
    assert_problem(Api(acme)("POST", "invitations", sent), 409)
    assert not Invitation.objects.exists()


def test_operators_invite_into_any_account(operator: Actor, acme: Actor, globex: Actor) -> None:
    sent = {"email": "ann@example.com", "role": "owner", "account": "acme"}
    made = Api(operator)("POST", "invitations", sent)
    assert made.json()["account"] == "acme"
    assert_problem(Api(operator)("POST", "invitations", sent | {"account": "nobody"}), 422)
    assert Api(globex)("GET", "invitations").json()["items"] == []
    assert_problem(Api(globex)("DELETE", f"invitations/{made.json()['id']}"), 404)
    assert_problem(Api(Actor("x", operator.account, "viewer"))("POST", "invitations", sent), 403)


@pytest.mark.parametrize(
    ("kind", "role", "into", "works"),
    [
        ("customer", "editor", "acme", False),
        ("customer", "viewer", "acme", False),
        ("customer", None, "acme", False),
        ("operator", "operator", "operator", False),
        ("operator", "operator", "acme", True),
        ("operator", "viewer", "acme", False),
        ("operator", None, "acme", False),
        ("operator", None, "globex", True),
    ],
)
def test_whoever_may_not_invite_any_more_cannot_come_back_by_a_link_of_their_own(
    kind: str, role: str | None, into: str, works: bool, operator: Actor, acme: Actor, globex: Actor
) -> None:
    """Olga loses her role in the operator's account or in acme; globex is her own."""
    of = operator if kind == "operator" else acme
    member(of, "another", "admin")
    olga = member(of, "olga", "admin")
    Membership.objects.create(user=olga.user, account=globex.account, role="admin")
    maker = Actor("olga", of.account, "admin", user_id=olga.user_id)
    _, secret = invitations.invite(actor=maker, email="olga@example.com", role="viewer", account=into)
    api, url = Api(operator), f"memberships/{olga.pk}"
    done = api("PATCH", url, {"role": role}, If_Match="*") if role else api("DELETE", url, If_Match="*")
    assert done.status_code in (200, 204)
    assert Client().get(f"/invitations/{secret}").status_code == (200 if works else 404)
