"""The pages of saved searches: saved from a search, opened, their history, deleted; whatever a filter says."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.logs import saved
from apps.logs.models import MetricPoint, SavedSearch
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
HOSTILE = 'path:"</script><b>ü🙂&%s"'


def test_a_search_is_saved_opened_and_deleted(acme: Actor, globex: Actor) -> None:
    client = client_of(acme)
    asked = client.get("/requests", {"q": HOSTILE}).content.decode()
    assert "requests/saved/new?q=path%3A%22%3C%2Fscript%3E" in asked
    sent = {
        "/name": "odd-ones",
        "/spec/filter": HOSTILE,
        "/spec/metric/measure": "share",
        "/spec/metric/among": "status:200",
    }
    answer = client.post(reverse("web:saved-search-new"), sent)
    row = SavedSearch.objects.get()
    assert answer["Location"] == reverse("web:saved-search", args=[row.pk])
    assert saved.document(row) == {"filter": HOSTILE, "metric": {"measure": "share", "among": "status:200"}}
    for address in ("/requests/saved", f"/requests/saved/{row.pk}"):
        text = client.get(address).content.decode()
        assert "odd-ones" in text
        assert "</script><b>" not in text
    assert 'aria-label="Saved searches"' in client.get("/requests").content.decode()
    other = client_of(globex)
    assert "odd-ones" not in other.get("/requests/saved").content.decode() + other.get("/requests").content.decode()
    assert other.get(f"/requests/saved/{row.pk}").status_code == 404
    assert other.post(f"/requests/saved/{row.pk}/delete", {"confirm": "odd-ones"}).status_code == 404
    client.post(f"/requests/saved/{row.pk}/delete", {"confirm": "other"})
    assert SavedSearch.objects.exists()
    client.post(f"/requests/saved/{row.pk}/delete", {"confirm": "odd-ones"})
    assert not SavedSearch.objects.exists()


def test_what_is_typed_wrong_is_said_beside_its_field(acme: Actor) -> None:
    sent = {"/name": "A b", "/spec/filter": "stauts:3"}
    answer = client_of(acme).post(reverse("web:saved-search-new"), sent)
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "did you mean status" in text
    assert 'value="A b"' in text


def test_a_metric_has_its_history(acme: Actor) -> None:
    row = saved.save_search(actor=acme, name="errors", spec={"filter": "status>=500", "metric": {"measure": "count"}})
    address = f"/requests/saved/{row.pk}"
    assert "Nothing was measured" in client_of(acme).get(address).content.decode()
    for minute, value in ((3, 12.0), (2, None), (1, 1234.0)):
        MetricPoint.objects.create(search=row, minute=now() - timedelta(minutes=minute), lines=1, value=value)
    text = client_of(acme).get(f"{address}?last=15m").content.decode()
    assert "1,234 per minute in the last minute" in text
    assert '"values": [12.0, null, 1234.0]' in text


def test_what_was_measured_before_nobody_measured_any_more_is_history_and_not_the_last_minute(acme: Actor) -> None:
    row = saved.save_search(actor=acme, name="errors", spec={"filter": "status>=500", "metric": {"measure": "count"}})
    MetricPoint.objects.create(search=row, minute=now() - timedelta(minutes=12), lines=7, value=7.0)
    text = client_of(acme).get(f"/requests/saved/{row.pk}").content.decode()
    assert '"values": [7.0]' in text
    assert "in the last minute" not in text
