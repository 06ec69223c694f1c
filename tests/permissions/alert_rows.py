"""The rows of alerts, and what stands behind them: an alert of the own account, a silence, a channel."""

from __future__ import annotations

from datetime import timedelta

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.alerts.models import Alert, ChannelState, Finding, Notification, Silence, Told
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.definitions.services import save_object
from apps.definitions.shapes.base.words import instant_text
from tests.permissions.kind_rows import ALERT_CHANNEL
from tests.permissions.page_rows import (
    ALL_REFUSED,
    EDIT_BY_ROLE,
    EDIT_FAULTY_BY_ROLE,
    LIST,
    NEW,
    NEW_FAULTY,
    READ_OWN,
    SENT_BY_ROLE,
    sent,
    shown,
)
from tests.permissions.rows import Row, codes

SEND = codes("403 404 404", "403 202 202", "403 202 202")
DONE = codes("403 404 404", "403 200 200", "403 200 200")
ENDED = codes("403 404 404", "403 204 204", "403 204 204")
CREATE = codes("403 201 201", "403 201 201", "403 201 201")
EVERYBODY_SENDS = codes("403 302 302", "403 302 302", "403 302 302")
OWN_RULE = {"name": "basket"}
OF_ALERT, OF_SILENCE = {"pk": "$alert"}, {"pk": "$silence"}
OF_CHANNEL, OF_RULE = {"pk": "$alertchannel"}, {"pk": "$alertrule"}
SPEC = {"rule": "pool-down", "objects": "shop-*", "ends_at": instant_text(now() + timedelta(days=1))}

OF_ALERTS: tuple[Row, ...] = (
    Row("api:alerts-list", "GET", LIST, holds="all"),
    Row("api:alerts-detail", "GET", READ_OWN, OF_ALERT, "alert"),
    Row("api:alerts-acknowledge", "POST", DONE, OF_ALERT, "alert"),
    Row("api:silences-list", "GET", LIST, holds="all"),
    Row("api:silences-list", "POST", CREATE, body={"spec": SPEC, "reason": "planned work"}),
    Row("api:silences-detail", "GET", READ_OWN, OF_SILENCE, "silence"),
    Row("api:silences-detail", "DELETE", ENDED, OF_SILENCE, "silence"),
    Row("api:alert-channels-test", "POST", SEND, OF_CHANNEL, "alertchannel"),
    Row("api:alert-channels-messages", "GET", READ_OWN, OF_CHANNEL, "alertchannel"),
    *shown("alerts", LIST, "all"),
    *shown("alert", READ_OWN, "alert", OF_ALERT),
    sent("alert-acknowledge", SENT_BY_ROLE, "alert", OF_ALERT),
    sent("alerts-acknowledge", ALL_REFUSED, "all", alert="$alert"),
    sent("alert-silence", EVERYBODY_SENDS, lasting="3600", reason="planned work"),
    sent("alert-silence-end", SENT_BY_ROLE, "silence", OF_SILENCE),
    *shown("alert-rules", LIST, "all"),
    Row("web:alert-rule-new", "GET", NEW, holds="all"),
    sent("alert-rule-new", NEW_FAULTY, "all", form={"/name": ""}),
    Row("web:alert-rule-edit", "GET", EDIT_BY_ROLE, OF_RULE, "alertrule"),
    sent("alert-rule-edit", EDIT_FAULTY_BY_ROLE, "alertrule", OF_RULE, form={"/spec/only": "???"}),
    sent("alert-rule-switch", codes("403 302 302", "403 302 302", "403 302 302"), path={"name": "pool-down"}),
    sent("alert-rule-delete", SENT_BY_ROLE, "alertrule", OF_RULE, confirm="basket"),
    *shown("alert-channels", LIST, "all"),
    *shown("alert-channel", READ_OWN, "alertchannel", OF_CHANNEL),
    Row("web:alert-channel-new", "GET", NEW, holds="all"),
    sent("alert-channel-new", NEW_FAULTY, "all", form={"/name": ""}),
    Row("web:alert-channel-edit", "GET", EDIT_BY_ROLE, OF_CHANNEL, "alertchannel"),
    sent("alert-channel-edit", EDIT_FAULTY_BY_ROLE, "alertchannel", OF_CHANNEL, form={"/spec/url": "x"}),
    sent("alert-channel-test", SENT_BY_ROLE, "alertchannel", OF_CHANNEL),
    sent("alert-channel-delete", SENT_BY_ROLE, "alertchannel", OF_CHANNEL, confirm="team"),
)


def make_alert_rows(account: Account) -> None:
    """A pool that is down, of which a channel was told, a silence and a rule."""
    actor, moment = Actor("somebody", account, "admin"), now()
    save_object(actor=actor, kind="AlertRule", name="basket", spec={"watches": "pool_down"})
    channel = save_object(actor=actor, kind="AlertChannel", name="team", spec=ALERT_CHANNEL)
    pool = Pool.objects.filter(account=account).earliest("pk")
    alert = Alert.objects.create(
        account=account, title="Pool of acme is down", severity="critical", weight=6, since=moment, opened_at=moment
    )
    Finding.objects.create(
        account=account, alert=alert, rule="basket", watches="pool_down", object_kind="pool", object_id=pool.pk,
        name=pool.name, title="Pool of acme is down", severity="critical", since=moment, due_at=moment,
    )  # fmt: skip
    ends = moment + timedelta(days=1)
    Silence.objects.create(account=account, objects_named="acme-works", reason="of acme", ends_at=ends, created_by="x")
    content = {"title": "Pool of acme is down", "page": f"/alerts/{alert.pk}"}
    thread = f"alert-{alert.pk}"
    Notification.objects.create(channel=channel, thread=thread, event="firing", content=content, created_at=moment)
    Told.objects.create(channel=channel, alert=alert, thread=thread, weight=6)
    ChannelState.objects.create(channel=channel)
