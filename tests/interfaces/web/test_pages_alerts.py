"""What people see of alerts, and what they do about them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.alerts.models import Alert, Notification, Silence
from apps.core.secrets.sealing import unseal
from apps.definitions.models import AlertChannel, AlertRule
from apps.definitions.services import save_object
from tests.apps.alerts_env import Installation, hook, make_pool
from tests.interfaces.people import client_of


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation."""
    return Installation()


def text_of(actor: Actor, name: str, *args: object) -> str:
    """A page as the actor sees it."""
    answer = client_of(actor).get(reverse(name, args=args))
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_page_shows_what_is_wrong_to_whom_it_belongs(
    installation: Installation, acme: Actor, globex: Actor
) -> None:
    installation.pool(make_pool(acme, "basket", "10.1.0.1"))
    installation.tick()
    assert "Pool basket is down" in text_of(acme, "web:alerts")
    assert "Nobody is told." in text_of(acme, "web:alerts")
    assert "Nothing is firing" in text_of(globex, "web:alerts")
    alert = Alert.objects.get(account=acme.account)
    page = text_of(acme, "web:alert", alert.pk)
    assert "pool-down" in page
    assert "No channel was told of it" in page


def test_somebody_acknowledges_and_the_page_says_who(installation: Installation, acme: Actor) -> None:
    installation.pool(make_pool(acme, "basket", "10.1.0.1"))
    installation.tick()
    alert = Alert.objects.get(account=acme.account)
    client_of(acme).post(reverse("web:alert-acknowledge", args=[alert.pk]))
    alert.refresh_from_db()
    assert alert.acknowledged_by
    assert alert.acknowledged_by in text_of(acme, "web:alerts")


def test_a_silence_is_made_shown_and_ended(installation: Installation, acme: Actor) -> None:
    sent = {"rule": "pool-down", "objects": "shop-*", "lasting": "3600", "reason": "new switches"}
    client_of(acme).post(reverse("web:alert-silence"), sent)
    row = Silence.objects.get()
    assert (row.rule, row.objects_named, row.reason) == ("pool-down", "shop-*", "new switches")
    assert "new switches" in text_of(acme, "web:alerts")
    client_of(acme).post(reverse("web:alert-silence-end", args=[row.pk]))
    assert "new switches" not in text_of(acme, "web:alerts")
    for faulty in ({"reason": ""}, {"objects": "a b"}, {"rule": "x\ny"}):
        client_of(acme).post(reverse("web:alert-silence"), sent | faulty)
    assert Silence.objects.count() == 1


def test_a_built_in_rule_is_switched_off_and_on_and_leaves_no_row(installation: Installation, acme: Actor) -> None:
    url = reverse("web:alert-rule-switch", args=["pool-degraded"])
    client_of(acme).post(url)
    assert AlertRule.objects.get().enabled is False
    client_of(acme).post(url)
    assert not AlertRule.objects.exists()
    assert client_of(acme).post(reverse("web:alert-rule-switch", args=["node-down"])).status_code == 404


def test_thresholds_are_written_as_numbers_are_everywhere(acme: Actor) -> None:
    save_object(actor=acme, kind="AlertRule", name="soon", spec={"watches": "certificate_expiring", "threshold": 1})
    shown = text_of(acme, "web:alert-rules")
    for said in ("from 5 %", "from 1,000 ms", "from 14.4 times", "from 1 time<", "below 14 days", "below 1 day<"):
        assert said in shown, said


def test_the_forms_save_rules_and_channels_and_show_no_secret(installation: Installation, acme: Actor) -> None:
    secret = "whsec_" + "QUJD" * 10
    ticked = [each.split(">")[0] for each in text_of(acme, "web:alert-channel-new").split('type="checkbox"')[1:]]
    assert ["checked" in each for each in ticked] == [True, True, False, True], (
        "as the document says: critical, warning"
    )
    sent = {
        "/name": "team", "/spec/type": "webhook", "/spec/url": "https://hooks.example/x", "/spec/secret": secret,
        "/spec/severities": ["critical"], "/spec/wait_minutes": "0", "/spec/enabled": "on",
    }  # fmt: skip
    answer = client_of(acme).post(reverse("web:alert-channel-new"), sent)
    assert answer.status_code == 302, answer.content.decode()
    row = AlertChannel.objects.get()
    assert unseal(bytes(row.sealed_secret or b"")).decode() == secret
    assert (row.severities, row.quiet) == (["critical"], None)
    for name in ("web:alert-channel", "web:alert-channel-edit"):
        assert secret not in text_of(acme, name, row.pk)
    again = {key: value for key, value in sent.items() if key not in ("/name", "/spec/secret")}
    quiet = {"/spec/quiet/start": "22:00", "/spec/quiet/end": "07:00", "/spec/quiet/zone": "Europe/Berlin"}
    version = {"version": str(row.version)}
    client_of(acme).post(reverse("web:alert-channel-edit", args=[row.pk]), again | quiet | version)
    row.refresh_from_db()
    assert row.quiet == {"start": "22:00", "end": "07:00", "zone": "Europe/Berlin"}
    assert unseal(bytes(row.sealed_secret or b"")).decode() == secret
    faulty = client_of(acme).post(reverse("web:alert-channel-new"), sent | {"/name": "x", "/spec/url": "ftp://x"})
    assert faulty.status_code == 422
    assert secret not in faulty.content.decode()
    rule = {"/name": "pool-errors", "/spec/watches": "pool_errors", "/spec/threshold": "2", "/spec/enabled": "on"}
    client_of(acme).post(reverse("web:alert-rule-new"), rule)
    assert AlertRule.objects.get().threshold == 2


def test_the_test_button_stores_a_message_and_the_log_shows_it(installation: Installation, acme: Actor) -> None:
    channel = hook(acme)
    client_of(acme).post(reverse("web:alert-channel-test", args=[channel.pk]))
    assert Notification.objects.get().event == "test"
    assert "Channel hook works" in text_of(acme, "web:alert-channel", channel.pk)
