"""Status pages: where people write, and what everybody reads without signing in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Pool, Server, StatusPage
from apps.definitions.services import save_object
from apps.status import services
from apps.status.models import Incident
from apps.web.status_pages import public
from tests.apps.alerts_env import Installation
from tests.apps.status_env import day, make_page, pools_behind
from tests.interfaces.people import client_of

HOSTILE = (
    "</p><script>alert(1)</script> javascript:alert(1) <a href=x>x</a> {{ 7|add:7 }} &amp; ]]> https://evil.example"
)
ATOM = "{http://www.w3.org/2005/Atom}"
SPEC: dict[str, Any] = {"title": "Payments fail", "text": "We look into it.", "components": ["Checkout"]}


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """What other tests left in this process is not shown."""
    public.KEPT.clear()
    yield
    public.KEPT.clear()


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation, looked at now."""
    made = Installation(at=now())
    made.tick(0)
    return made


def text_of(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status, address
    return answer.content.decode()


def as_read(page: str) -> str:
    """A page without what differs from one request to the next."""
    return re.sub(r"<code>[0-9a-f-]{8,}</code>", "", page)


def test_a_page_is_public_only_once_it_is_switched_on(installation: Installation, acme: Actor, globex: Actor) -> None:
    page = make_page(acme, "shop")
    nobody, member, stranger = Client(), client_of(acme), client_of(globex)
    for client in (nobody, member, stranger):
        for address in ("/status/shop/", "/status/shop", "/status/shop/feed.atom"):
            assert as_read(text_of(client, address, 404)) == as_read(
                text_of(client, address.replace("shop", "nowhere"), 404)
            )
    assert "Checkout" in text_of(member, f"/status-pages/{page.pk}")
    text_of(stranger, f"/status-pages/{page.pk}", 404)
    assert nobody.get(f"/status-pages/{page.pk}").status_code == 302
    make_page(acme, "shop", public=True)  # control
    for client in (nobody, member, stranger):
        assert "Checkout" in text_of(client, "/status/shop/")
    make_page(acme, "shop")
    text_of(nobody, "/status/shop/", 404)


def test_a_suspended_accounts_page_is_gone(installation: Installation, acme: Actor) -> None:
    make_page(acme, "shop", public=True)
    text_of(Client(), "/status/shop/")
    Account.objects.filter(pk=acme.account.pk).update(suspended_at=now())
    text_of(Client(), "/status/shop/", 404)


def test_visitors_read_nothing_but_what_was_written_for_them(installation: Installation, acme: Actor) -> None:
    page, (pool,) = make_page(acme, "front", public=True, rules=["pool-down"]), pools_behind(acme)
    installation.pool(pool)
    day(pool, 1, down=3)
    services.open_incident(actor=acme, page_id=page.pk, spec=SPEC)
    shown = text_of(Client(), "/status/front/") + text_of(Client(), "/status/front/feed.atom")
    assert "Major outage" in shown
    servers = Server.objects.filter(backend__pool=pool)
    secrets = [*servers.values_list("address", flat=True), *servers.values_list("name", flat=True)]
    secrets += [acme.name, "somebody", "pool", "acme", "shop.acme", "us-central1", "pool-down", "srv-"]
    for secret in secrets:
        assert secret.lower() not in shown.lower().replace("acme shop", ""), secret
    assert "csrf" not in shown


def test_hostile_texts_are_text(installation: Installation, acme: Actor) -> None:
    page = make_page(acme, "shop", public=True)
    row = services.open_incident(actor=acme, page_id=page.pk, spec=SPEC | {"text": HOSTILE})
    services.write_update(actor=acme, incident_id=row.pk, spec={"text": f"{HOSTILE}\n\n<img src=x onerror=y>"})
    for client, address in (
        (Client(), "/status/shop/"),
        (client_of(acme), f"/status-pages/{page.pk}"),
        (client_of(acme), f"/incidents/{row.pk}"),
    ):
        shown = text_of(client, address)
        assert "&lt;script&gt;alert(1)" in shown
        for tag in ("<script>alert", "<img src=x", "<a href=x", 'href="javascript', 'href="https://evil'):
            assert tag not in shown, (address, tag)
        assert "{{ 7|add:7 }}" in shown
    feed = ET.fromstring(text_of(Client(), "/status/shop/feed.atom"))  # noqa: S314 - it is ours
    summary = feed.findtext(f"{ATOM}entry/{ATOM}summary") or ""
    assert "&lt;script&gt;alert(1)" in summary
    assert "<script" not in summary


def test_the_feed_is_atom_with_the_newest_word_of_each_incident(installation: Installation, acme: Actor) -> None:
    page = make_page(acme, "shop", public=True)
    rows = [services.open_incident(actor=acme, page_id=page.pk, spec=SPEC | {"title": f"No {n}"}) for n in (1, 2)]
    services.write_update(actor=acme, incident_id=rows[0].pk, spec={"text": "Done.", "status": "resolved"})
    answer = Client().get("/status/shop/feed.atom")
    assert answer["Content-Type"] == "application/atom+xml; charset=utf-8"
    feed = ET.fromstring(answer.content)  # noqa: S314 - it is ours
    assert feed.tag == f"{ATOM}feed"
    # What RFC 4287 asks of a feed and of an entry.
    for name in ("id", "title", "updated", f"author/{ATOM}name"):
        assert feed.findtext(f"{ATOM}{name}"), name
    rels = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    assert rels == {
        "alternate": "http://testserver/status/shop/",
        "self": "http://testserver/status/shop/feed.atom",
    }
    entries = feed.findall(f"{ATOM}entry")
    assert len({each.findtext(f"{ATOM}id") for each in entries}) == 2
    for each in entries:
        for name in ("id", "title", "updated", "published", "summary"):
            assert each.findtext(f"{ATOM}{name}"), name
    titles = [each.findtext(f"{ATOM}title") for each in entries]
    assert titles == ["No 2 (investigating)", "No 1 (resolved)"]
    assert "Done." in (entries[1].findtext(f"{ATOM}summary") or "")


def test_a_crowd_is_answered_from_what_was_made_once(installation: Installation, acme: Actor) -> None:
    page = make_page(acme, "shop", public=True)
    first = Client().get("/status/shop/")
    assert first["Cache-Control"] == "public, max-age=10"
    assert "Set-Cookie" not in first
    assert "Cookie" not in first.get("Vary", "")
    for client in (Client(), client_of(acme)):
        client.get("/healthz")
        with CaptureQueriesContext(connection) as queries:
            again = client.get("/status/shop/")
        assert again.content == first.content
        assert len([each for each in queries if "status" in each["sql"]]) == 1
    unchanged = Client().get("/status/shop/", headers={"If-None-Match": first["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    services.open_incident(actor=acme, page_id=page.pk, spec=SPEC)
    assert "Payments fail" not in text_of(Client(), "/status/shop/")
    public.KEPT.clear()  # ten seconds later
    with CaptureQueriesContext(connection) as queries:
        assert "Payments fail" in text_of(Client(), "/status/shop/")
    assert len(queries) <= 12
    make_page(acme, "shop", public=True, title="Renamed")  # another version is never answered from before
    assert "Renamed" in text_of(Client(), "/status/shop/")


def test_only_one_visitor_waits_while_the_page_is_made_anew(installation: Installation, acme: Actor) -> None:
    made: list[int] = []

    def make() -> str:
        made.append(len(made))
        if len(made) == 2:  # meanwhile others ask
            assert public._made("key", make).body == b"0"
        return str(made[-1])

    assert public._made("key", make).body == b"0"
    public.KEPT.delete(f"{hashlib.sha256(b'key').hexdigest()}-turn")  # ten seconds later
    assert public._made("key", make).body == b"1"
    assert made == [0, 1]


def test_a_reader_takes_no_page_for_another(installation: Installation, acme: Actor, globex: Actor) -> None:
    make_page(acme, "one", public=True)
    make_page(globex, "two", public=True, title="Globex", components=[])
    for _ in range(2):
        assert "Acme shop" in text_of(Client(), "/status/one/")
        assert "Globex" in text_of(Client(), "/status/two/")
    assert Client().post("/status/one/").status_code == 405


def test_the_bars_say_each_day_and_gaps_are_unknown(installation: Installation, acme: Actor) -> None:
    make_page(acme, "shop", public=True)
    (pool,) = pools_behind(acme)
    for back in (1, 2, 4):
        day(pool, back, down=7 if back == 2 else 0)
    shown = text_of(Client(), "/status/shop/")
    kinds = re.findall(r'<rect class="([a-z]+)"', shown)
    assert len(kinds) == 90
    assert kinds[-5:] == ["good", "idle", "bad", "good", "idle"]
    assert set(kinds[:-5]) == {"idle"}
    assert "out for 7 min" in shown
    assert "up 99.83 % of the time measured" in shown
    assert 'aria-label="Days of Checkout: 87 unknown, 2 operational, 1 major outage"' in shown


def test_people_make_a_page_write_and_close_an_incident_by_forms(installation: Installation, acme: Actor) -> None:
    client = client_of(acme)
    sent = {
        "/name": "shop", "/spec/title": "Acme shop", "/spec/rules": "pool-down", "/spec/public": "on",
        "/spec/components": "Checkout = shop\n\nBasket=shop , shop",
    }  # fmt: skip
    refused = client.post(reverse("web:status-page-new"), sent)
    assert refused.status_code == 422
    assert "Entry 2: Name each entry of routes once." in refused.content.decode()
    answer = client.post(reverse("web:status-page-new"), sent | {"/spec/components": "Checkout = shop"})
    page = StatusPage.objects.get()
    assert answer["Location"] == f"/status-pages/{page.pk}"
    assert page.components == [{"name": "Checkout", "routes": ["shop"]}]
    assert (page.public, page.rules) == (True, ["pool-down"])
    assert "Checkout = shop" in text_of(client, f"/status-pages/{page.pk}/edit")
    asked = f"/status-pages/{page.pk}/incidents/new"
    incident = {
        "/spec/title": "Payments fail", "/spec/text": "We look\r\ninto it.", "/spec/components": ["Checkout"],
        "/spec/impact": "partial_outage", "/spec/status": "investigating",
    }  # fmt: skip
    assert client.post(asked, incident | {"/spec/text": ""}).status_code == 422
    assert client.post(asked, incident)["Location"] == f"/status-pages/{page.pk}"
    row = Incident.objects.get()
    assert (row.impacts, row.updates.get().text) == ({"Checkout": "partial_outage"}, "We look\ninto it.")
    update = {"/spec/text": "Done.", "/spec/status": "resolved", "/spec/impact": ""}
    assert client.post(f"/incidents/{row.pk}", update | {"/spec/text": " "}).status_code == 422
    assert client.post(f"/incidents/{row.pk}", update)["Location"] == f"/status-pages/{page.pk}"
    assert Incident.objects.get().resolved_at
    client.post(f"/incidents/{row.pk}/delete", {"confirm": "Payments"})
    assert Incident.objects.exists()
    client.post(f"/incidents/{row.pk}/delete", {"confirm": "Payments fail"})
    assert not Incident.objects.exists()


def test_maintenance_is_planned_by_a_form_and_ended_early(installation: Installation, acme: Actor) -> None:
    page, client = make_page(acme), client_of(acme)
    begin, end = (f"{now() + timedelta(hours=hours):%Y-%m-%dT%H:%M}" for hours in (1, 3))
    sent = {
        "/spec/title": "New disks", "/spec/text": "Short breaks.", "/spec/components": ["Checkout"],
        "/spec/begins_at": begin, "/spec/ends_at": end,
    }  # fmt: skip
    asked = f"/status-pages/{page.pk}/incidents/new?planned=1"
    assert "/spec/status" not in text_of(client, asked)
    assert client.post(asked, sent | {"/spec/ends_at": ""}).status_code == 422
    assert client.post(asked, sent).status_code == 302
    assert "Planned maintenance" in text_of(client, f"/status-pages/{page.pk}")
    row = Incident.objects.get()
    client.post(f"/incidents/{row.pk}", {"/spec/text": "Not needed.", "/spec/status": "resolved"})
    assert Incident.objects.get().resolved_at
    assert "Publish update" not in text_of(client, f"/incidents/{row.pk}")
    late = client.post(f"/incidents/{row.pk}", {"/spec/text": "More."})
    assert "This maintenance is over" in late.content.decode()


def test_members_are_told_of_routes_that_are_gone(installation: Installation, acme: Actor) -> None:
    page = make_page(acme)
    assert "Routes are gone" not in text_of(client_of(acme), f"/status-pages/{page.pk}")
    page.components = [{"name": "Checkout", "routes": ["gone"]}]
    page.save()
    assert "gone: components that name them are unknown" in text_of(client_of(acme), f"/status-pages/{page.pk}")


def test_status_alone_leads_to_the_own_pages(installation: Installation, acme: Actor) -> None:
    assert client_of(acme).get("/status")["Location"] == "/status-pages"
    make_page(acme)
    assert "Acme shop" in text_of(client_of(acme), "/status-pages")


def test_a_pool_of_another_account_that_is_shared_counts_as_the_visitor_meets_it(
    installation: Installation, operator: Actor, acme: Actor
) -> None:
    pool: Pool = save_object(actor=operator, kind="Pool", name="shared", spec={"tags": {"kind": "shared"}})
    save_object(actor=operator, kind="Grant", name="shared", spec={"account": "acme", "tag": "kind=shared"})
    (own,) = pools_behind(acme)
    own.route_shares.filter(route__name="shop").update(pool=pool)
    make_page(acme, "shop", public=True)
    installation.pool(pool)
    shown = text_of(Client(), "/status/shop/")
    assert "Major outage" in shown
    assert "shared" not in shown
