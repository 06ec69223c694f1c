"""A thousand conditions at once, told to a real mail server and a real Alertmanager: a handful of messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership, User
from apps.alerts.models import Alert, Notification
from apps.definitions.models import AlertChannel, Pool
from apps.definitions.services import save_object
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from tests.apps.alerts_env import Installation, mailing, rule
from tests.e2e.alertmanager import running_alertmanager

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.slow(reason="a thousand pools fail and recover, a real Alertmanager beside them"),
]
DOWN = (Type.HEALTHY, False, Reason.NO_SERVER_UP, "No server is up.")
WELL = (Type.HEALTHY, True, Reason.ALL_SERVERS_UP, "All servers are up.")
MOST = 10


def say(installation: Installation, pools: list[Pool], verdict: tuple[Type, bool, Reason, str]) -> None:
    """What the collector says of them, some hundreds a second; every second messages go out."""
    for part in (pools[:300], pools[300:900], pools[900:]):
        store_verdicts([Verdict("pool", pool.pk, *verdict) for pool in part], installation.at)
        installation.tick()
        installation.deliver()
    for _ in range(9):
        installation.tick(10)
        installation.deliver()


def test_a_thousand_at_once_are_at_most_ten_messages_in_each_channel(
    tutorial_env: Actor, acme: Actor, settings: Settings, tmp_path: Path
) -> None:
    for name in ("quota-used", "nobody-told"):
        rule(acme, name, watches=name.replace("-", "_"), enabled=False)
    installation = Installation()
    with mailing(settings) as sink, running_alertmanager(tmp_path) as manager:
        person = User.objects.create(username="ops", email="ops@acme.example")
        Membership.objects.create(user=person, account=acme.account, role="viewer")
        save_object(actor=acme, kind="AlertChannel", name="mail", spec={"type": "email", "to": ["ops@acme.example"]})
        spec = {"type": "alertmanager", "url": manager.url}
        prometheus: AlertChannel = save_object(actor=acme, kind="AlertChannel", name="prometheus", spec=spec)
        pools = Pool.objects.bulk_create([Pool(account=acme.account, name=f"p{number}") for number in range(1000)])
        say(installation, pools, DOWN)
        assert Alert.objects.filter(account=acme.account, resolved_at=None).count() == 1000
        assert 1 <= len(manager.alerts()) <= MOST, "an alert there for each message"
        say(installation, pools, WELL)
        assert Alert.objects.filter(account=acme.account, resolved_at=None).count() == 0
        assert manager.alerts() == []
    posted = Notification.objects.filter(channel=prometheus, state="delivered").count()
    assert 2 <= len(sink.mails) <= MOST
    assert 2 <= posted <= MOST
    assert "Resolved" in sink.subjects[-1]
    print(f"{len(sink.mails)} mails, {posted} messages to Alertmanager")
