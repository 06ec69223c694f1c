"""The pages of grants: operators give and see what is used, nobody pulls it away; customers see what is shared."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Grant, Membership
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from tests.apps.test_grant_services import SPEC, answer, grant, text, to_pool
from tests.interfaces.people import client_of

TYPED = {"/name": "for-acme", "/spec/account": "acme", "/spec/hostname": "", "/spec/tag": "", "/spec/expires_at": ""}


@pytest.fixture
def search(tutorial_env: Actor) -> Pool:
    """A pool of the operator that carries tags."""
    spec = SPEC | {"tags": {"customer": "acme", "rival": "globex"}}
    saved: Pool = save_object(actor=tutorial_env, kind="Pool", name="search", spec=spec)
    return saved


def shown(client: Any, name: str, *args: Any) -> str:
    """The text of a page."""
    response = client.get(reverse(f"web:{name}", args=args))
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def test_an_operator_makes_changes_and_deletes_a_grant(tutorial_env: Actor) -> None:
    client = client_of(tutorial_env)
    assert "No grants yet" in shown(client, "grants")
    sent = TYPED | {"/spec/tag": "customer=acme", "/spec/expires_at": "2031-01-31T12:00", "reason": "their search"}
    page = client.post(reverse("web:grant-new"), sent, follow=True).content.decode()
    assert "customer=acme" in page
    assert "their search" in page
    assert "for-acme" in shown(client, "grants")
    form = shown(client, "grant-edit", "for-acme")
    assert 'value="2031-01-31T12:00:00"' in form
    changed = sent | {"version": "1", "/spec/tag": "", "/spec/hostname": "*.given.example", "/spec/expires_at": ""}
    assert client.post(reverse("web:grant-edit", args=["for-acme"]), changed).status_code == 302
    row = Grant.objects.get()
    assert (row.tag, row.hostname, row.may_load_test, row.expires_at) == ("", "*.given.example", False, None)
    stale = client.post(reverse("web:grant-edit", args=["for-acme"]), changed | {"/spec/hostname": "b.example"})
    assert (stale.status_code, Grant.objects.get().hostname) == (422, "*.given.example")
    client.post(reverse("web:grant-delete", args=["for-acme"]), {"confirm": "other"})
    assert Grant.objects.exists()
    client.post(reverse("web:grant-delete", args=["for-acme"]), {"confirm": "for-acme"})
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({}, "exactly one of hostname and tag"),
        ({"/spec/tag": "customer"}, "Write a tag as key=value"),
        ({"/spec/hostname": "Shop.example"}, "lower case"),
        ({"/spec/tag": "a=b", "/spec/expires_at": "soon"}, "Write a moment in UTC"),
        ({"/spec/tag": "a=b", "/name": "Not a name"}, '<p class="error">'),
    ],
)
def test_a_refusal_keeps_what_was_typed_and_says_what_to_do(
    tutorial_env: Actor, typed: dict[str, str], says: str
) -> None:
    response = client_of(tutorial_env).post(reverse("web:grant-new"), TYPED | typed)
    page = html.unescape(response.content.decode())
    assert response.status_code == 422
    assert says in page
    assert all(value in page for value in typed.values())


def test_a_grant_that_a_route_needs_stays_and_the_page_names_the_route(
    search: Pool, tutorial_env: Actor, acme: Actor
) -> None:
    grant(tutorial_env, tag="customer=acme")
    save_object(actor=acme, kind="Route", name="finder", spec=to_pool("operator/search"))
    client = client_of(tutorial_env)
    assert "finder" in shown(client, "grant", "for-acme")
    page = client.post(reverse("web:grant-delete", args=["for-acme"]), {"confirm": "for-acme"}, follow=True)
    assert "acme/finder" in page.content.decode()
    grant(tutorial_env, tag="customer=acme", expires_at=text(-1))
    assert "This grant has ended" in shown(client, "grant", "for-acme")


def test_a_grant_of_a_hostname_shows_the_names_that_it_verifies(tutorial_env: Actor, acme: Actor) -> None:
    grant(tutorial_env, hostname="*.given.example")
    save_object(actor=acme, kind="Route", name="given", spec=answer("a.given.example"))
    page = shown(client_of(tutorial_env), "grant", "for-acme")
    assert "verified by a grant" in page
    assert "a.given.example" in page


def test_customers_have_no_page_of_grants_and_viewers_change_none(tutorial_env: Actor, acme: Actor) -> None:
    grant(tutorial_env, tag="customer=acme")
    customer, viewer = client_of(acme), client_of(tutorial_env, Membership.Role.VIEWER)
    for name, args in (("grants", []), ("grant", ["for-acme"]), ("grant-new", []), ("grant-edit", ["for-acme"])):
        assert customer.get(reverse(f"web:{name}", args=args)).status_code == 404
    assert "New grant" not in shown(viewer, "grants")
    assert viewer.post(reverse("web:grant-new"), TYPED | {"/spec/tag": "a=b"}).status_code == 403
    assert viewer.post(reverse("web:grant-delete", args=["for-acme"]), {"confirm": "for-acme"}).status_code == 403
    assert Grant.objects.count() == 1


def test_a_shared_pool_is_shown_without_what_only_its_owner_may_do_or_know(
    search: Pool, tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    grant(tutorial_env, tag="customer=acme")
    client = client_of(acme)
    assert "shared by Operator" in shown(client, "pools")
    page = shown(client, "pool", search.pk)
    assert "operator/search" in page
    for secret in ("rival", "globex", reverse("web:pool-edit", args=[search.pk]), 'id="definition"', "kind: Pool"):
        assert secret not in page
    assert "rival=globex" in shown(client_of(tutorial_env), "pool", search.pk)
    for tab in ("yaml", "api", "generated"):
        assert client.get(reverse("web:definition", args=["pool", search.pk]), {"tab": tab}).status_code == 404
    assert client.get(reverse("web:pool-edit", args=[search.pk])).status_code == 403
    assert client.post(reverse("web:pool-delete", args=[search.pk]), {"confirm": "search"}).status_code == 403
    assert client.post(reverse("web:pool-servers", args=[search.pk]), {"do": "drain"}).status_code == 403
    assert client_of(globex).get(reverse("web:pool", args=[search.pk])).status_code == 404
    assert "operator/search" in client.get(reverse("web:options", args=["pools"]), {"pool": "sear"}).content.decode()


def test_the_form_of_a_pool_keeps_its_tags(search: Pool, tutorial_env: Actor) -> None:
    page = shown(client_of(tutorial_env), "pool-edit", search.pk)
    assert 'value="customer=acme, rival=globex"' in page
