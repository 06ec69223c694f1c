"""The page of the system says of each part how it is, since when, and what to do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.actors import Actor
from apps.core.clock import database_now, now
from apps.system import heartbeat, selectors
from apps.system.models import PartState, Process
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def page(actor: Actor) -> str:
    return " ".join(client_of(actor).get("/system").content.decode().split())


def test_each_part_has_a_state_and_what_to_do(operator: Actor, live_redis: str) -> None:
    heartbeat.beat("web", first=True)
    text = page(operator)
    assert all(f'id="part-{name}"' in text for name, _, _ in selectors.ASKED)
    assert "Nobody reads the nodes" in text
    assert "Start spillway-collector.service on a console." in text
    assert text.index('id="part-collector"') < text.index('id="part-backups"') < text.index('id="part-web"')


def test_since_when_is_shown_where_it_is_known(operator: Actor, live_redis: str) -> None:
    selectors.note_states()
    hour = now() - timedelta(hours=1)
    PartState.objects.filter(name="collector").update(since=hour)
    PartState.objects.filter(name="backups").delete()
    text = page(operator)
    row = text[text.index('id="part-collector"') :]
    assert f"{hour:%Y-%m-%d %H:%M} UTC" in row[: row.index("</tr>")]
    row = text[text.index('id="part-backups"') :]
    assert "unknown" in row[: row.index("</tr>")]


def test_errors_of_processes_are_shown_as_text(operator: Actor, live_redis: str) -> None:
    at = database_now()
    said = [{"at": at.isoformat(), "text": "<b>it</b> failed"}]
    Process.objects.create(kind="worker", host="a", pid=7, version="1", began_at=at, heard_at=at, errors=said)
    assert "&lt;b&gt;it&lt;/b&gt; failed" in page(operator)


def test_customers_do_not_see_it(acme: Actor) -> None:
    assert client_of(acme).get("/system").status_code == 404
