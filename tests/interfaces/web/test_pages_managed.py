"""What a pipeline manages is changed by hand only with broken glass."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.definitions.models import Pool, Route
from tests.interfaces.forms import untouched
from tests.interfaces.people import client_of


@pytest.fixture
def managed(tutorial_env: Actor, acme: Actor) -> Client:
    """Acme's own browser, with a route and a pool that a pipeline made."""
    Route.objects.filter(account=acme.account).update(manager="ci")
    Pool.objects.filter(account=acme.account).update(manager="ci")
    return client_of(acme)


def fields_of(page: str, form: str) -> dict[str, str]:
    """What the form with this id would send untouched."""
    return untouched(page.split(f'id="{form}"')[1].split("</form>", maxsplit=1)[0])


@pytest.mark.parametrize(("noun", "form"), [("route", "route-form"), ("pool", "pool-form")])
def test_a_form_of_a_managed_object_has_a_box_and_saves_only_with_it(
    managed: Client, acme: Actor, noun: str, form: str
) -> None:
    model = Route if noun == "route" else Pool
    row = model._default_manager.filter(account=acme.account, name="shop").get()
    url = f"/{noun}s/{row.pk}/edit"
    page = managed.get(url).content.decode()
    assert "Break glass" in page
    sent = fields_of(page, form)
    sent |= {"prefix_rewrite": "/x"} if noun == "route" else {"/spec/connect_timeout_ms": "1234"}
    refused = managed.post(url, sent)
    assert refused.status_code == 422
    assert "managed by ci" in refused.content.decode()
    assert model._default_manager.get(pk=row.pk).version == row.version
    assert managed.post(url, sent | {"break_glass": "true"}).status_code == 302
    assert Entry.objects.latest("pk").reason == "Break glass (ci)."


def test_a_managed_route_is_deleted_only_with_the_box(managed: Client, acme: Actor) -> None:
    row = Route.objects.get(account=acme.account, name="old-shop")
    url = f"/routes/{row.pk}/delete"
    assert "Break glass" in managed.get(url).content.decode()
    assert managed.post(url, {"confirm": "old-shop"}).status_code == 409
    assert managed.post(url, {"confirm": "old-shop", "break_glass": "true"}).status_code == 302
    assert not Route.objects.filter(pk=row.pk).exists()


def test_nobody_is_asked_about_glass_where_no_pipeline_is(tutorial_env: Actor, acme: Actor) -> None:
    pk = Route.objects.get(account=acme.account, name="shop").pk
    assert "Break glass" not in client_of(acme).get(f"/routes/{pk}/edit").content.decode()
