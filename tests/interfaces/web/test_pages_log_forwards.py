"""The pages of log forwards: how each does, its form with mistakes, a test, its end."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.core.clock import now
from apps.drivers.logs.contract import Record
from apps.drivers.logs.registry import open_queues
from apps.logs.forward import services
from apps.logs.models import LogForward
from tests.interfaces.people import client_of
from tests.interfaces.web.test_pages_requests import shown

FIELDS = {"/name": "siem", "/spec/url": "https://logs.example.com/v1/logs", "/spec/filter": "status>=500"}
SECRET = {"/spec/header_name": "X-Key", "/spec/header_value": "s3cret"}


@pytest.fixture
def row(acme: Actor) -> LogForward:
    return services.make_forward(actor=acme, name="siem", spec={"url": "https://logs.example.com/v1/logs"})


def test_a_log_forward_is_made_and_shown_with_how_it_does(acme: Actor, globex: Actor, settings: Settings) -> None:
    client = client_of(acme)
    assert client.post("/log-forwards/new", FIELDS | SECRET).status_code == 302
    made = LogForward.objects.get(account=acme.account)
    record = Record(now(), "id", "n1", "f", acme.account.pk, "l", "h", status=503)
    open_queues(settings.LOGS_URL).append(made.pk, [record], now())
    LogForward.objects.update(failures=3, failing_since=now(), error="The receiver <b>answered</b> 503.", skipped=17)
    text = shown(client, "/log-forwards")
    for said in ("siem", "Failing", "&lt;b&gt;answered", "17, too old or too many", "bytes", "X-Key"):
        assert said in text, said
    assert "s3cret" not in text + shown(client, f"/log-forwards/{made.pk}/edit")
    assert "siem" not in shown(client_of(globex), "/log-forwards")


def test_lines_that_wait_on_another_machine_are_counted_as_it_said(acme: Actor, row: LogForward) -> None:
    assert "<dd>nothing</dd>" in shown(client_of(acme), "/log-forwards")
    LogForward.objects.update(lines_waiting=1234)
    assert "1,234 lines, counted every half minute" in shown(client_of(acme), "/log-forwards")


def test_a_log_forward_of_spans_says_so_and_stays_one(acme: Actor) -> None:
    client = client_of(acme)
    fields = {"/name": "tempo", "/spec/url": "https://tempo.example.com/v1/traces"}
    assert client.post("/log-forwards/new", {**fields, "/spec/sends": "spans"}).status_code == 302
    made = LogForward.objects.get(name="tempo")
    text = shown(client, "/log-forwards")
    assert "spans of sampled requests" in text
    assert "0 spans" in text
    client.post(f"/log-forwards/{made.pk}/edit", fields | {"version": "1", "/spec/enabled": "on"})
    made.refresh_from_db()
    assert made.sends == "spans"
    answer = client.post("/log-forwards/new", {**fields, "/spec/url": "syslog+tls://a.example", "/spec/sends": "spans"})
    assert "Syslog has no spans" in answer.content.decode()


def test_mistakes_stand_beside_their_fields_and_what_was_typed_stays(acme: Actor) -> None:
    client = client_of(acme)
    for field, wrong, said in (
        ("/spec/url", "syslog://x", "Begin the URL with"),
        ("/spec/filter", "stauts:3", "did you mean status"),
        ("/spec/ca", "nonsense", "Paste certificates"),
        ("/spec/header_name", "a b", "name of a header"),
        ("/name", "No Name", "lower"),
    ):
        answer = client.post("/log-forwards/new", FIELDS | SECRET | {field: wrong})
        assert answer.status_code == 422
        assert said in answer.content.decode(), field
        assert wrong in answer.content.decode()


def test_an_edit_keeps_the_secret_and_notices_another_edit(acme: Actor) -> None:
    client = client_of(acme)
    client.post("/log-forwards/new", FIELDS | SECRET)
    made = LogForward.objects.get()
    sent = {**FIELDS, "/spec/header_name": "X-Key", "/spec/enabled": "on", "version": "1", "/spec/filter": ""}
    assert client.post(f"/log-forwards/{made.pk}/edit", sent).status_code == 302
    after = LogForward.objects.get()
    assert (after.filter, bytes(after.header_value or b"")) == ("", bytes(made.header_value or b""))
    stale = client.post(f"/log-forwards/{made.pk}/edit", sent | {"/spec/filter": "status:200"})
    assert stale.status_code == 422
    assert "Not saved" in stale.content.decode()


def test_a_test_and_an_end_by_name(acme: Actor, row: LogForward) -> None:
    client = client_of(acme)
    LogForward.objects.update(url="https://localhost:9/v1/logs")
    answer = client.post(f"/log-forwards/{row.pk}/test", follow=True)
    assert "did not arrive. The connection was refused." in answer.content.decode()
    client.post(f"/log-forwards/{row.pk}/delete", {"confirm": "another"})
    assert LogForward.objects.exists()
    client.post(f"/log-forwards/{row.pk}/delete", {"confirm": "siem"})
    assert not LogForward.objects.exists()


def test_viewers_see_them_and_change_nothing(acme: Actor, row: LogForward) -> None:
    viewer = client_of(acme, Membership.Role.VIEWER)
    assert "Send a test" not in shown(viewer, "/log-forwards")
    for address in ("new", f"{row.pk}/edit", f"{row.pk}/test", f"{row.pk}/delete"):
        assert viewer.post(f"/log-forwards/{address}", FIELDS | {"confirm": "siem"}).status_code == 403, address
