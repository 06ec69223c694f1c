"""Who is in an account, with which role, and how more come in."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Invitation, Membership, User
from apps.accounts.sign_in.invitations import accept_invitation
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import NotFound, SpillwayError
from apps.members import invitations, people
from tests.interfaces.people import client_of

PASSWORD = "correct horse battery"
NEW = {"/username": "ann", "/password": PASSWORD}


def member(actor: Actor, name: str, role: str) -> Membership:
    """One more person in the actor's account."""
    return Membership.objects.create(user=User.objects.create(username=name), account=actor.account, role=role)


def invited(actor: Actor, role: str = "viewer", email: str = "ann@example.com") -> str:
    """The path of a new invitation."""
    return f"/invitations/{invitations.invite(actor=actor, email=email, role=role)[1]}"


def test_the_page_shows_the_people_of_the_account_and_nobody_else(acme: Actor, globex: Actor) -> None:
    member(globex, "hidden-person", "viewer")
    member(acme, "bob", "editor")
    page = client_of(acme).get("/people").content.decode()
    assert "bob" in page
    assert "hidden-person" not in page


def test_an_owner_gives_another_role_and_the_record_says_so(acme: Actor) -> None:
    bob = member(acme, "bob", "viewer")
    answer = client_of(acme).post(f"/people/{bob.pk}/role", {"role": "editor"}, follow=True)
    assert "bob is now editor" in answer.content.decode()
    entry = Entry.objects.get(object_kind="Membership", action="update")
    assert (entry.before, entry.after) == ({"person": "bob", "role": "viewer"}, {"person": "bob", "role": "editor"})
    assert entry.account == acme.account


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_only_owners_change_people(acme: Actor, role: str) -> None:
    bob, client = member(acme, "bob", "viewer"), client_of(acme, role)
    assert client.post(f"/people/{bob.pk}/role", {"role": "owner"}).status_code == 403
    assert client.post(f"/people/{bob.pk}/remove").status_code == 403
    assert client.get("/people/invite").status_code == 403
    assert "Invite" not in client.get("/people").content.decode().replace("Invited", "")
    bob.refresh_from_db()
    assert bob.role == "viewer"


def test_people_of_another_account_do_not_exist(acme: Actor, globex: Actor) -> None:
    foreign = member(globex, "bob", "viewer")
    for path in (f"/people/{foreign.pk}/role", f"/people/{foreign.pk}/remove"):
        assert client_of(acme).post(path, {"role": "owner"}).status_code == 404
    assert Membership.objects.get(pk=foreign.pk).role == "viewer"


@pytest.mark.parametrize("act", ["role", "remove"])
def test_the_last_owner_stays_one(acme: Actor, act: str) -> None:
    client = client_of(acme)
    me = Membership.objects.get(account=acme.account)
    answer = client.post(f"/people/{me.pk}/{act}", {"role": "viewer"}, follow=True)
    assert "is the last owner of Acme" in answer.content.decode()
    assert Membership.objects.get().role == "admin"
    member(acme, "bob", "admin")
    client.post(f"/people/{me.pk}/{act}", {"role": "viewer"})
    assert not Membership.objects.filter(pk=me.pk, role="admin").exists()


def test_anybody_may_leave(acme: Actor) -> None:
    client_of(acme)
    client = client_of(acme, "viewer")
    me = Membership.objects.get(role="viewer")
    client.post(f"/people/{me.pk}/remove")
    assert not Membership.objects.filter(role="viewer").exists()
    assert client.get("/people").status_code == 403


def test_a_link_is_shown_once_and_lets_a_new_person_in(acme: Actor, client: Client) -> None:
    page = client_of(acme).post("/people/invite", {"/email": "ann@Example.com", "/role": "editor"})
    path = re.findall(r"http://testserver(/invitations/[\w-]{43})", page.content.decode())[0]
    assert page["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert path.rpartition("/")[2] not in str(list(Invitation.objects.values()))
    assert path.rpartition("/")[2] not in str(list(Entry.objects.values()))
    assert "invites you as editor" in client.get(path).content.decode()
    answer = client.post(path, NEW, follow=True)
    assert answer.redirect_chain == [("/", 302)]
    assert client.get("/people").status_code == 200
    assert Membership.objects.get(user__username="ann").role == "editor"
    assert Entry.objects.get(action="accept").actor == "ann"
    assert User.objects.get(username="ann").email == ""  # nobody has shown that the address is theirs
    assert Client().get(path).status_code == 404


def test_somebody_who_is_signed_in_joins_with_the_name_they_have(acme: Actor, globex: Actor) -> None:
    client = client_of(globex)
    page = client.post(invited(acme), follow=True)
    assert page.context["actor"].account == acme.account
    assert Membership.objects.filter(user__username="admin-of-globex").count() == 2
    client.post("/switch", {"account": "globex"})
    assert client.get("/people").context["actor"].account == globex.account
    assert client.post("/switch", {"account": "operator"}).status_code == 404


def test_who_is_in_the_account_already_leaves_the_invitation_open(acme: Actor) -> None:
    path = invited(acme)
    answer = client_of(acme).post(path)
    assert answer.status_code == 422
    assert "You are already a member of Acme" in answer.content.decode()
    assert Client().get(path).status_code == 200


@pytest.mark.parametrize("case", ["wrong", "cut", "used", "revoked", "expired"])
def test_links_that_do_not_work_look_the_same_whatever_is_wrong(acme: Actor, case: str) -> None:
    path = invited(acme)
    columns = {"used": {"accepted_at": now()}, "revoked": {"revoked_at": now()}, "expired": {"expires_at": now()}}
    if case in columns:
        Invitation.objects.update(**columns[case])
    path = {"wrong": path[:-1] + ("a" if path[-1] != "a" else "b"), "cut": path[:-1]}.get(case, path)

    def body(answer: Any) -> str:
        return re.sub(r"<code>\w+</code>|csrfmiddlewaretoken\S+ \S+", "", answer.content.decode())

    never = f"/invitations/{'x' * 43}"
    for method, data in (("get", {}), ("post", NEW)):
        answer, other = getattr(Client(), method)(path, data), getattr(Client(), method)(never, data)
        assert (answer.status_code, body(answer)) == (404, body(other))
    assert not User.objects.filter(username="ann").exists()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"/username": "", "/password": PASSWORD}, "This field is required"),
        ({"/username": "an n", "/password": PASSWORD}, "Enter a valid username"),
        ({"/username": "ANN-OF-OLD", "/password": PASSWORD}, "This username is taken"),
        ({"/username": "ann", "/password": "tiny-one"}, "This password is too short"),
        ({"/username": "ann", "/password": "password1234"}, "too common"),
    ],
)
def test_a_new_person_is_told_what_to_change(acme: Actor, sent: dict[str, str], words: str) -> None:
    User.objects.create(username="ann-of-old")
    path = invited(acme)
    answer = Client().post(path, sent)
    assert (answer.status_code, words in answer.content.decode()) == (422, True)
    assert sent["/password"] not in answer.content.decode()
    assert Client().post(path, NEW).status_code == 302


def test_an_invitation_that_was_taken_back_leaves_the_list(acme: Actor) -> None:
    client, path = client_of(acme), invited(acme)
    row = Invitation.objects.get()
    assert "ann@example.com" in client.get("/people").content.decode()
    assert client.post(f"/people/invitations/{row.pk}/take-back").status_code == 302
    assert client.post(f"/people/invitations/{row.pk}/take-back").status_code == 404
    assert Client().get(path).status_code == 404


@pytest.mark.parametrize(
    "email", ["", "ann", "a@b", "a\r\nBcc: x@example.com@example.com", "ä@example.com", "<b>@x.de"]
)
def test_what_is_no_address_is_refused_beside_the_field(acme: Actor, email: str) -> None:
    answer = client_of(acme).post("/people/invite", {"/email": email, "/role": "viewer"})
    assert answer.status_code == 422
    assert not Invitation.objects.exists()


def test_a_mailed_link_is_shown_to_nobody_and_proves_the_address(acme: Actor, settings: Settings) -> None:
    settings.MAILS = True
    page = client_of(acme).post("/people/invite", {"/email": "ann@example.com", "/role": "viewer", "mail": "on"})
    path = re.findall(r"http://testserver(/invitations/[\w-]{43})", str(mail.outbox[0].body))[0]
    assert path not in page.content.decode()
    assert mail.outbox[0].to == ["ann@example.com"]
    assert Client().post(path, NEW).status_code == 302
    assert User.objects.get(username="ann").email == "ann@example.com"


def test_nobody_gets_mail_after_mail_from_whoever_invites_and_takes_back(
    acme: Actor, globex: Actor, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAILS = True

    def invited(actor: Actor, email: str) -> str:
        client = client_of(actor)
        text = client.post("/people/invite", {"/email": email, "/role": "viewer", "mail": "on"}).content.decode()
        Invitation.objects.update(revoked_at=now())
        return text

    texts = [invited(actor, "ann@example.com") for actor in (acme, acme, globex, globex, acme)]
    assert len(mail.outbox) == 3
    assert ["The mail could not be sent" in text for text in texts] == [False, False, False, True, True]
    assert "/invitations/" in texts[-1]
    monkeypatch.setattr(invitations, "MOST_BY_ONE", 3)
    for number in range(3):
        invited(acme, f"ann{number}@example.com")
    assert len(mail.outbox) == 4
    Invitation.objects.update(created_at=now() - timedelta(minutes=16))
    invited(acme, "ann@example.com")
    assert len(mail.outbox) == 5


def test_a_mail_that_cannot_be_sent_costs_only_the_mail(acme: Actor, settings: Settings) -> None:
    settings.MAILS, settings.EMAIL_BACKEND = True, "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    page = client_of(acme).post("/people/invite", {"/email": "ann@example.com", "/role": "viewer", "mail": "on"})
    assert "The mail could not be sent" in page.content.decode()
    assert "/invitations/" in page.content.decode()
    assert not Invitation.objects.get().mailed


def test_people_and_open_invitations_count_against_the_quota(acme: Actor) -> None:
    acme.account.quotas = {"people": 2}
    acme.account.save()
    client = client_of(acme)
    invited(acme)
    answer = client.post("/people/invite", {"/email": "bob@example.com", "/role": "viewer"})
    assert (answer.status_code, "The quota of Acme is 2 people" in answer.content.decode()) == (422, True)


def test_who_is_taken_out_does_not_come_back_through_a_link_of_their_own(acme: Actor) -> None:
    bob = member(acme, "bob", "admin")
    member(acme, "olga", "admin")
    links = [invited(Actor(name, acme.account, "admin"), email=f"{name}@example.com") for name in ("bob", "olga")]
    people.remove_person(actor=acme, membership_id=bob.pk)
    assert [Client().get(link).status_code for link in links] == [404, 200]


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("racers", [24, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_of_many_acceptances_at_once_one_gets_in(acme: Actor, racers: int) -> None:
    path = invited(acme)
    secret = path.rpartition("/")[2]
    users = [User.objects.create(username=f"racer-{number}") for number in range(racers)]

    def accept(user: User) -> bool:
        try:
            accept_invitation(secret=secret, user=user)
        except NotFound:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(accept, users))
    assert won.count(True) == 1
    assert Membership.objects.get().user == users[won.index(True)]
    assert Entry.objects.filter(action="accept").count() == 1


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_two_owners_who_remove_each_other_at_once_leave_one(acme: Actor) -> None:
    rows = [member(acme, f"owner-{number}", "admin") for number in range(8)]

    def remove(row: Membership) -> None:
        try:
            people.remove_person(actor=acme, membership_id=row.pk)
        except SpillwayError:
            pass
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(remove, rows))
    assert Membership.objects.filter(role="admin").count() == 1


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_both_of_two_owners_would_go(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    rows, gate = [member(acme, f"owner-{number}", "admin") for number in range(2)], threading.Barrier(2)
    checked = people._keep_an_admin

    def both_look(row: Membership) -> None:
        checked(row)
        gate.wait(10)

    monkeypatch.setattr(people, "lock_quotas", lambda *_: None)
    monkeypatch.setattr(people, "_keep_an_admin", both_look)

    def remove(row: Membership) -> None:
        try:
            people.remove_person(actor=acme, membership_id=row.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(remove, rows))
    assert not Membership.objects.exists()
