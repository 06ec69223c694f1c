"""A log forward whose receiver is away is told to its account, by mail that arrives, and so is its end."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.alerts.models import Alert, Finding
from apps.definitions.services import save_object
from apps.drivers.logs.registry import open_queues
from apps.logs.forward.forwarding import deliver, tidy
from apps.logs.metrics import families
from apps.logs.models import LogForward
from tests.apps.alerts_env import Installation, mailing, rule, titles
from tests.apps.test_log_forwarding import line, spooled, to_otlp
from tests.log_receivers import otlp_receiver

TITLE = "Log forward to-otlp does not reach its receiver"


def samples(account: str) -> dict[str, float]:
    return {
        sample.name.removeprefix("spillway_log_forward_"): sample.value
        for family in families()
        for sample in family.samples
        if sample.labels == {"account": account, "forward": "to-otlp"}
    }


@pytest.mark.slow(reason="mails to a real server and sends to a real receiver, before and after it is well again")
def test_a_failing_log_forward_is_told_to_its_account_alone_and_so_is_its_end(
    acme: Actor, operator: Actor, settings: Settings
) -> None:
    installation, queues = Installation(), open_queues(settings.LOGS_URL)

    def ask(times: int) -> None:
        for _ in range(times):
            LogForward.objects.update(not_before=None)
            deliver(queues, row.pk)
        tidy(queues, installation.at)

    with otlp_receiver() as receiver, mailing(settings) as sink:
        save_object(
            actor=operator, kind="AlertChannel", name="mail", spec={"type": "email", "to": ["ops@acme.example"]}
        )
        row = to_otlp(operator, receiver)
        spooled(queues, line(acme, 1), line(acme, 2))
        receiver.status = 503
        ask(1)
        installation.tick(60, times=3)
        assert titles(operator) == [], "one failure may be a restart"
        ask(1)
        installation.tick(60, times=3)
        assert titles(operator) == [TITLE]
        assert not Alert.objects.exclude(account=operator.account).exists()
        detail = Finding.objects.get(watches="forward_failing").detail
        assert "The receiver answered 503." in detail
        assert "2 lines wait" in detail
        told = samples(operator.account.name)
        assert (told["waiting_lines"], told["sent_lines_total"], told["skipped_lines_total"]) == (2, 0, 0)
        assert told["failing_seconds"] > 0
        installation.deliver()
        assert [subject for subject in sink.subjects if TITLE in subject]
        receiver.status = 200
        ask(1)
        assert (
            samples(operator.account.name).items()
            >= {"waiting_lines": 0, "sent_lines_total": 2, "failing_seconds": 0}.items()
        )
        installation.tick(11, times=3)
        assert titles(operator) == []
        installation.deliver()
        assert [subject for subject in sink.subjects if "Resolved" in subject]


def test_an_account_may_switch_the_rule_off_and_a_log_forward_that_is_off_fails_nobody(
    acme: Actor, globex: Actor, operator: Actor
) -> None:
    installation = Installation()
    for actor in (acme, globex):
        LogForward.objects.create(
            account=actor.account, name="siem", url="https://x.example", failures=9, failing_since=installation.at
        )
    rule(acme, "forward-failing", watches="forward_failing", enabled=False)
    installation.tick(60, times=3)
    assert (titles(acme), titles(globex)) == ([], ["Log forward siem does not reach its receiver"])
    assert titles(operator) == [], "whose receiver it is hears of it"
    LogForward.objects.update(enabled=False)
    installation.tick(11, times=3)
    assert titles(globex) == []
