"""Lines go on to real receivers: each at least once, to whom they belong, and never to a private address."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid
from apps.core.secrets.sealing import unseal
from apps.drivers.logs.contract import Record
from apps.drivers.logs.queues import Queues
from apps.drivers.logs.registry import open_queues
from apps.logs import services as log_services
from apps.logs.forward import forwarding, services
from apps.logs.forward.forwarding import deliver, tidy
from apps.logs.forward.spooling import forwards, spooler
from apps.logs.models import LogForward
from tests.log_receivers import Receiver, otlp_receiver, syslog_receiver

SYSLOG_MESSAGE = re.compile(
    rb"<(?P<priority>\d+)>1 (?P<time>\S+Z) (?P<host>[!-~]{1,255}) spillway - (?P<id>request|connection) - (?P<text>.*)",
    re.DOTALL,
)
HOSTILE = 'a"b\\]\n\r\t\0<34>1 \u202e☃'


@pytest.fixture
def syslog() -> Iterator[Receiver]:
    with syslog_receiver() as found:
        yield found


@pytest.fixture
def otlp() -> Iterator[Receiver]:
    with otlp_receiver() as found:
        yield found


@pytest.fixture
def queues(settings: Settings) -> Queues:
    return open_queues(settings.LOGS_URL)


def line(actor: Actor, number: int = 1, **said: Any) -> Record:
    usual = {"node": "n1", "fleet": "f", "load_balancer": "front", "listener": "http", "status": 200, "route": "shop"}
    usual |= {"method": "GET", "host": "shop.example", "path": f"/{number}", "client": "192.0.2.7", "total_ms": 7}
    moment = datetime(2026, 11, 23, 8, 30, 1, 234000, UTC) + timedelta(seconds=number)
    return Record(time=moment, id=f"id-{number}", account=actor.account.pk, **{**usual, **said})


def to_syslog(actor: Actor, receiver: Receiver, **spec: object) -> LogForward:
    wanted = {"url": f"syslog+tls://localhost:{receiver.port}", "ca": receiver.ca, **spec}
    return services.make_forward(actor=actor, name="to-syslog", spec=wanted)


def to_otlp(actor: Actor, receiver: Receiver, **spec: object) -> LogForward:
    wanted = {"url": f"https://localhost:{receiver.port}/v1/logs", "ca": receiver.ca, **spec}
    return services.make_forward(actor=actor, name="to-otlp", spec=wanted)


def spooled(queues: Queues, *records: Record) -> None:
    spooler(queues, forwards())(records)


def told(receiver: Receiver) -> list[dict[str, Any]]:
    """What a syslog receiver read: the JSON of each message."""
    matches = [SYSLOG_MESSAGE.fullmatch(each) for each in receiver.messages]
    assert all(matches)
    return [json.loads(each["text"]) for each in matches if each]


def test_syslog_messages_are_framed_and_nothing_of_a_client_breaks_them(
    acme: Actor, syslog: Receiver, queues: Queues
) -> None:
    row = to_syslog(acme, syslog)
    spooled(queues, line(acme, 1, status=503), line(acme, 2, path=HOSTILE, headers={"X": HOSTILE}, node="n 1\n"))
    deliver(queues, row.pk)
    first, second = told(syslog)
    assert first["status"] == 503
    assert first["account"] == "acme"
    assert (second["path"], second["headers"]) == (HOSTILE, {"X": HOSTILE})
    priority, time, host = syslog.messages[0].split()[:3]
    assert (priority, time, host) == (b"<131>1", b"2026-11-23T08:30:02.234Z", b"n1")
    row.refresh_from_db()
    assert (row.sent, row.failures, row.error) == (2, 0, "")
    assert queues.waiting(row.pk, row.positions).bytes == 0


def test_a_long_line_is_cut_to_what_receivers_take(acme: Actor, syslog: Receiver, queues: Queues) -> None:
    row = to_syslog(acme, syslog)
    spooled(queues, line(acme, 1, path="/" + "☃" * 8000), line(acme, 2, **dict.fromkeys(("path", "query"), "☃" * 9000)))
    deliver(queues, row.pk)
    assert [len(each) <= 8192 for each in syslog.messages] == [True, True]
    assert [each["cut"] for each in told(syslog)] == [True, True]


def test_otlp_is_what_its_json_encoding_says_with_the_secret_in_a_header(
    acme: Actor, otlp: Receiver, queues: Queues
) -> None:
    row = to_otlp(acme, otlp, header_name="Authorization", header_value="Bearer s3cret")
    assert b"s3cret" not in bytes(row.header_value or b"")
    assert unseal(bytes(row.header_value or b"")) == b"Bearer s3cret"
    spooled(queues, line(acme, 1, status=500, headers={"User-Agent": "x"}), line(acme, 2, node="n2", path=HOSTILE))
    deliver(queues, row.pk)
    ((path, headers, body),) = otlp.requests
    assert (path, headers["authorization"], headers["content-type"]) == (
        "/v1/logs",
        "Bearer s3cret",
        "application/json",
    )
    assert set(body) == {"resourceLogs"}
    one, two = body["resourceLogs"]
    assert {"key": "service.instance.id", "value": {"stringValue": "n2"}} in two["resource"]["attributes"]
    (record,) = one["scopeLogs"][0]["logRecords"]
    assert record["timeUnixNano"] == str(1795422602234 * 10**6)
    assert (record["severityNumber"], record["severityText"]) == (17, "ERROR")
    named = {each["key"]: each["value"] for each in record["attributes"]}
    assert named["http.response.status_code"] == {"intValue": "500"}
    assert named["spillway.account"] == {"stringValue": "acme"}
    assert named["http.request.header.user-agent"] == {"stringValue": "x"}
    (other,) = two["scopeLogs"][0]["logRecords"]
    assert {"key": "url.path", "value": {"stringValue": HOSTILE}} in other["attributes"]


def test_everybody_gets_their_own_lines_that_fit_and_operators_all(
    acme: Actor, globex: Actor, operator: Actor, syslog: Receiver, otlp: Receiver, queues: Queues
) -> None:
    own, house = to_syslog(acme, syslog, filter="status>=500"), to_otlp(operator, otlp)
    spooled(queues, line(acme, 1, status=503), line(acme, 2), line(globex, 3, status=500))
    deliver(queues, own.pk)
    deliver(queues, house.pk)
    assert [(each["path"], each["account"]) for each in told(syslog)] == [("/1", "acme")]
    ((_, _, body),) = otlp.requests
    assert len(body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) == 3
    LogForward.objects.filter(pk=own.pk).update(filter="nothing that can be read:")
    spooled(queues, line(acme, 4, status=503))
    own.refresh_from_db()
    assert queues.waiting(own.pk, own.positions).bytes == 0


def test_a_receiver_that_is_away_holds_its_position_and_then_gets_everything_in_order(
    acme: Actor, syslog: Receiver, queues: Queues
) -> None:
    row = to_syslog(acme, syslog)
    syslog.breaks = True
    spooled(queues, line(acme, 1), line(acme, 2))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert (row.sent, row.failures, row.positions) == (0, 1, {})
    assert row.error
    assert row.not_before is not None
    assert row.not_before > now()
    spooled(queues, line(acme, 3))
    syslog.breaks = False
    deliver(queues, row.pk)
    assert syslog.messages == []  # it rests after a failure
    LogForward.objects.update(not_before=None)
    deliver(queues, row.pk)
    assert [each["path"] for each in told(syslog)] == ["/1", "/2", "/3"]
    row.refresh_from_db()
    assert (row.sent, row.failures, row.failing_since, row.error) == (3, 0, None, "")


def test_a_worker_that_dies_after_it_sent_sends_again(
    acme: Actor, syslog: Receiver, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = to_syslog(acme, syslog)
    spooled(queues, line(acme, 1))

    def dies(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(forwarding, "_note", dies)
        with pytest.raises(KeyboardInterrupt):
            deliver(queues, row.pk)
    deliver(queues, row.pk)
    assert len(syslog.messages) == 1  # the lease of the one who died holds
    LogForward.objects.update(claimed_until=now() - timedelta(seconds=1))
    deliver(queues, row.pk)
    assert [each["path"] for each in told(syslog)] == ["/1", "/1"]


@pytest.mark.parametrize(("status", "again"), [(503, True), (401, True), (404, True), (400, False), (413, False)])
def test_what_a_receiver_says_decides_what_is_sent_again(
    acme: Actor, otlp: Receiver, queues: Queues, status: int, again: bool
) -> None:
    row = to_otlp(acme, otlp)
    otlp.status = status
    spooled(queues, line(acme))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert (row.failures, row.refused) == ((1, 0) if again else (0, 1))
    assert str(status) in row.error
    assert bool(queues.waiting(row.pk, row.positions).bytes) == again


def test_lines_that_a_receiver_refuses_of_many_are_counted(acme: Actor, otlp: Receiver, queues: Queues) -> None:
    row = to_otlp(acme, otlp)
    otlp.answer = b'{"partialSuccess": {"rejectedLogRecords": "2"}}'
    spooled(queues, *(line(acme, number) for number in range(5)))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert (row.sent, row.refused, row.error) == (3, 2, "The receiver refused 2 lines.")


@pytest.mark.parametrize("said", [b'{"partialSuccess": {"rejectedLogRecords": 1e999}}', b"[" * 4000, b"\xff"])
def test_an_answer_that_says_nothing_of_lines_has_taken_them_all(
    acme: Actor, otlp: Receiver, queues: Queues, said: bytes
) -> None:
    row = to_otlp(acme, otlp)
    otlp.answer = said
    spooled(queues, line(acme))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert (row.sent, row.refused, row.claimed_until) == (1, 0, None)
    assert queues.waiting(row.pk, row.positions).bytes == 0


def test_what_is_older_than_the_store_keeps_goes_and_is_counted(acme: Actor, syslog: Receiver, queues: Queues) -> None:
    row = to_syslog(acme, syslog)
    queues.append(row.pk, [line(acme, number) for number in range(3)], now() - timedelta(days=15))
    queues.append(row.pk, [line(acme, 9)], now())
    tidy(queues, now())
    row.refresh_from_db()
    assert row.skipped == 3
    deliver(queues, row.pk)
    assert [each["path"] for each in told(syslog)] == ["/9"]


def test_lines_of_a_log_forward_that_is_off_or_gone_are_forgotten(
    acme: Actor, syslog: Receiver, queues: Queues
) -> None:
    row = to_syslog(acme, syslog)
    spooled(queues, line(acme))
    services.change_forward(actor=acme, pk=row.pk, spec={"enabled": False})
    tidy(queues, now())
    assert queues.known() == []
    spooled(queues, line(acme))
    assert queues.known() == []


def test_lines_that_are_deleted_are_not_forwarded_any_more(
    acme: Actor, operator: Actor, syslog: Receiver, queues: Queues
) -> None:
    own, house = to_syslog(acme, syslog), to_syslog(operator, syslog)
    for row in (own, house):
        queues.append(row.pk, [line(acme)], now() - timedelta(hours=3))
    for actor in (acme, operator):
        log_services.delete_lines(actor=actor, before=now() - timedelta(hours=1))
    assert [bool(queues.waiting(row.pk, {}).bytes) for row in (own, house)] == [False, True]


def test_lines_that_are_deleted_on_another_machine_are_not_forwarded_either(
    acme: Actor, syslog: Receiver, tmp_path: Path
) -> None:
    row, there = to_syslog(acme, syslog), Queues(tmp_path / "another-machine")
    there.append(row.pk, [line(acme, 1)], now() - timedelta(hours=3))
    there.append(row.pk, [line(acme, 2)], now())
    log_services.delete_lines(actor=acme, before=now() - timedelta(hours=1))
    log_services.delete_lines(actor=acme, before=now() - timedelta(hours=5))
    deliver(there, row.pk)
    assert [each["path"] for each in told(syslog)] == ["/2"]
    tidy(there, now())
    row.refresh_from_db()
    assert (row.sent, row.skipped) == (1, 0)


def test_a_private_address_is_not_called_whatever_its_name(
    acme: Actor, syslog: Receiver, queues: Queues, settings: Settings
) -> None:
    row = to_syslog(acme, syslog)
    settings.OUTBOUND_NETWORKS = []
    spooled(queues, line(acme))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert "We do not call this address" in row.error
    assert syslog.messages == []
    for url in ("syslog+tls://127.0.0.1:6514", "https://169.254.169.254/v1/logs", "syslog+tls://localhost"):
        with pytest.raises(Invalid):
            services.make_forward(actor=acme, name="private", spec={"url": url})


def test_who_has_another_certificate_is_not_sent_a_line(acme: Actor, syslog: Receiver, queues: Queues) -> None:
    row = to_syslog(acme, syslog, ca="")
    spooled(queues, line(acme))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert "certificate is not accepted" in row.error
    assert syslog.messages == []


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"url": "syslog://logs.example.com"}, "/spec/url"),
        ({"url": "syslog+tls://logs.example.com/path"}, "/spec/url"),
        ({"url": "syslog+tls://user:pw@logs.example.com"}, "/spec/url"),
        ({"url": 7}, "/spec/url"),
        ({"filter": "stauts:5"}, "/spec/filter"),
        ({"filter": "account:globex"}, "/spec/filter"),
        ({"ca": "no certificate"}, "/spec/ca"),
        ({"ca": "-----BEGIN PRIVATE KEY-----"}, "/spec/ca"),
        ({"ca": "x" * 70000}, "/spec/ca"),
        ({"header_name": "X Y", "header_value": "v"}, "/spec/header_name"),
        ({"header_name": "Host", "header_value": "v"}, "/spec/header_name"),
        ({"header_name": "Content-Length", "header_value": "0"}, "/spec/header_name"),
        ({"header_name": "X-Key", "header_value": "a\r\nb: c"}, "/spec/header_value"),
        ({"header_name": "X-Key", "header_value": "☃"}, "/spec/header_value"),
        ({"header_name": "X-Key"}, "/spec/header_value"),
        ({"url": "syslog+tls://logs.example.com", "header_name": "X", "header_value": "v"}, "/spec/header_name"),
        ({"enabled": 1}, "/spec/enabled"),
        ({"position": 0}, "/spec/position"),
        (7, "/spec"),
    ],
)
def test_a_mistake_is_named(acme: Actor, spec: object, pointer: str) -> None:
    wanted = {"url": "https://logs.example.com/v1/logs", **spec} if isinstance(spec, dict) else spec
    with pytest.raises(Invalid) as caught:
        services.make_forward(actor=acme, name="wrong", spec=wanted)
    assert [each.pointer for each in caught.value.field_errors] == [pointer]


def test_a_secret_does_not_move_to_another_url_by_itself_and_is_in_no_audit_record(acme: Actor) -> None:
    spec = {"url": "https://logs.example.com/v1/logs", "header_name": "X-Key", "header_value": "s3cret"}
    row = services.make_forward(actor=acme, name="one", spec=spec)
    with pytest.raises(Invalid, match="header's value again"):
        services.change_forward(actor=acme, pk=row.pk, spec={"url": "https://evil.example.com/v1/logs"})
    services.change_forward(actor=acme, pk=row.pk, spec={"filter": "status>=500"})
    row.refresh_from_db()
    assert unseal(bytes(row.header_value or b"")) == b"s3cret"
    said = json.dumps(list(Entry.objects.filter(object_kind="LogForward").values("before", "after")))
    assert "X-Key" in said
    assert "s3cret" not in said


def test_a_log_forward_that_moves_may_leave_its_header_behind(acme: Actor) -> None:
    spec = {"url": "https://a.example/v1/logs", "header_name": "Authorization", "header_value": "Bearer s3cret"}
    row = services.make_forward(actor=acme, name="siem", spec=spec)
    moved = {"url": "https://b.example/v1/logs", "header_name": ""}
    changed = services.change_forward(actor=acme, pk=row.pk, spec=moved)
    assert (changed.url, changed.header_name, changed.header_value) == ("https://b.example/v1/logs", "", None)


def test_an_account_has_few_log_forwards_with_names_of_their_own(acme: Actor) -> None:
    spec = {"url": "https://logs.example.com/v1/logs"}
    services.make_forward(actor=acme, name="one", spec=spec)
    with pytest.raises(Conflict):
        services.make_forward(actor=acme, name="one", spec=spec)
    for number in range(services.MOST_EACH - 1):
        services.make_forward(actor=acme, name=f"more-{number}", spec=spec)
    with pytest.raises(Invalid, match="at most"):
        services.make_forward(actor=acme, name="last", spec=spec)


def test_a_test_goes_at_once_and_says_what_came_of_it(acme: Actor, syslog: Receiver) -> None:
    row = to_syslog(acme, syslog)
    assert services.send_test(actor=acme, pk=row.pk).sent == 1
    assert told(syslog)[0]["test_run"] == "test of a log forward"
    with pytest.raises(Conflict):
        services.send_test(actor=acme, pk=row.pk)
    LogForward.objects.update(tested_at=None)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    LogForward.objects.update(url=f"syslog+tls://localhost:{port}")
    assert "refused" in services.send_test(actor=acme, pk=row.pk).error


def test_a_suspended_account_is_sent_nothing(acme: Actor, syslog: Receiver, queues: Queues) -> None:
    row = to_syslog(acme, syslog)
    spooled(queues, line(acme))
    Account.objects.filter(pk=acme.account.pk).update(suspended_at=now())
    deliver(queues, row.pk)
    assert syslog.messages == []


class TestQueue:
    """The files that lines wait in."""

    def test_a_frame_that_was_not_finished_is_passed_over(self, acme: Actor, tmp_path: Path) -> None:
        queues, moment = Queues(tmp_path), now()
        queues.append(1, [line(acme, 1)], moment)
        (path,) = tmp_path.glob("1/*.lines")
        whole = path.read_bytes()
        for torn in (whole[:-1], whole[:20], b"\x93SPL" + b"\xff" * 40, whole[:-3] + b"xyz"):
            path.write_bytes(whole + torn)
            queues.append(1, [line(acme, 2)], moment)
            frames = queues.read(1, {}, 10)
            assert [each.path for frame in frames for each in frame.records] == ["/1", "/2"]
            positions = queues.moved(1, {}, frames)
            assert positions == {path.name: path.stat().st_size}
            path.write_bytes(path.read_bytes() + torn)
            assert queues.read(1, positions, 10) == []
            assert queues.tidy(1, positions, moment + timedelta(hours=1), moment - timedelta(days=1)) == 0
            assert not path.exists()

    def test_an_older_file_that_grows_late_is_read_as_well(self, acme: Actor, tmp_path: Path) -> None:
        queues, moment = Queues(tmp_path), now()
        queues.append(1, [line(acme, 1)], moment)
        positions = queues.moved(1, {}, queues.read(1, {}, 10))
        queues.append(1, [line(acme, 2)], moment - timedelta(minutes=11))
        assert [frame.records[0].path for frame in queues.read(1, positions, 10)] == ["/2"]

    def test_sent_files_go_and_their_names_may_come_again(self, acme: Actor, tmp_path: Path) -> None:
        queues, moment = Queues(tmp_path), now()
        queues.append(1, [line(acme, number) for number in range(2500)], moment)
        frames = queues.read(1, {}, 10)
        assert [len(each.records) for each in frames] == [1000, 1000, 500]
        positions = queues.moved(1, {}, frames)
        long_ago = moment - timedelta(days=1)
        assert queues.tidy(1, positions, moment, long_ago) == 0
        assert queues.waiting(1, positions).since is None
        assert queues.tidy(1, positions, moment + timedelta(hours=1), long_ago) == 0
        assert list(tmp_path.glob("1/*.lines")) == []
        queues.append(1, [line(acme, 3)], moment)
        assert [frame.records[0].path for frame in queues.read(1, positions, 10)] == ["/3"]

    def test_of_too_many_the_oldest_go(self, acme: Actor, tmp_path: Path) -> None:
        queues, moment = Queues(tmp_path), now()
        for hours in (3, 2, 1):
            queues.append(1, [line(acme, hours)] * hours, moment - timedelta(hours=hours))
        size = queues.waiting(1, {}).bytes
        assert queues.tidy(1, {}, moment, moment - timedelta(days=1), size - 1) == 3
        assert [frame.records[0].path for frame in queues.read(1, {}, 10)] == ["/2", "/1"]
