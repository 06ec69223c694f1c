"""Sampled requests go on as spans that a real schema of OTLP reads, and to nobody but whom they belong to."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.drivers.logs.contract import Record
from apps.drivers.logs.files.columns import row_of
from apps.drivers.logs.queues import HEAD, MARK, Queues
from apps.drivers.logs.registry import open_queues
from apps.logs.forward import services
from apps.logs.forward.forwarding import deliver, tidy
from apps.logs.models import LogForward
from tests.apps.test_log_forwarding import HOSTILE, line, spooled, to_otlp
from tests.log_receivers import Receiver, otlp_receiver

TRACE, SPAN, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = {"trace_id": TRACE, "span_id": SPAN, "parent_span_id": PARENT, "sampled": "yes"}
IDS = ("traceId", "spanId", "parentSpanId")
NS = 10**6


@pytest.fixture
def otlp() -> Iterator[Receiver]:
    with otlp_receiver() as found:
        yield found


@pytest.fixture
def queues(settings: Settings) -> Queues:
    return open_queues(settings.LOGS_URL)


def to_spans(actor: Actor, receiver: Receiver, **spec: object) -> LogForward:
    return to_otlp(actor, receiver, url=f"https://localhost:{receiver.port}/v1/traces", sends="spans", **spec)


def of_schema(value: Any) -> Any:
    """OTLP writes ids as hexadecimal, where JSON of protobuf has base64."""
    if isinstance(value, list):
        return [of_schema(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in IDS else of_schema(each)
        for name, each in value.items()
    }


def read_spans(receiver: Receiver) -> list[Span]:
    """Every span that came, as the schema reads it: a field that it does not know is an error."""
    found = []
    for path, _, body in receiver.requests:
        assert path == "/v1/traces"
        request = ParseDict(of_schema(body), ExportTraceServiceRequest())
        found += [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return found


def named(span: Span) -> dict[str, object]:
    """Attributes by name; a name that is there twice is an error."""
    found: dict[str, object] = {}
    for each in span.attributes:
        assert each.key not in found
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return found


def sent(actor: Actor, receiver: Receiver, queues: Queues, record: Record, **spec: object) -> list[Span]:
    row = to_spans(actor, receiver, **spec)
    spooled(queues, record)
    deliver(queues, row.pk)
    return read_spans(receiver)


def test_a_sampled_request_is_a_span_of_a_server(acme: Actor, otlp: Receiver, queues: Queues) -> None:
    times = {"request_ms": 4, "queue_ms": 1, "connect_ms": 2, "response_ms": 30, "total_ms": 40}
    told = {"query": "a=1", "tls": "TLSv1.3", "headers": {"user-agent": "curl/8"}, "pool": "web", "region": "eu"}
    record = line(acme, 1, **SAMPLED, **times, **told)
    (span,) = sent(acme, otlp, queues, record)
    assert (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()) == (TRACE, SPAN, PARENT)
    assert (span.name, span.kind, span.status.code) == ("GET shop", Span.SPAN_KIND_SERVER, Status.STATUS_CODE_UNSET)
    begun = round((record.time - timedelta(milliseconds=4)).timestamp() * 1000) * NS
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (begun, begun + 40 * NS)
    assert span.flags == 0x301, "sampled, and the parent is elsewhere"
    said = named(span)
    assert said.items() >= {
        "http.request.method": "GET", "http.response.status_code": 200, "url.scheme": "https", "url.path": "/1",
        "url.query": "a=1", "server.address": "shop.example", "client.address": "192.0.2.7",
        "user_agent.original": "curl/8", "spillway.account": "acme", "spillway.route": "shop", "spillway.pool": "web",
        "spillway.region": "eu", "spillway.queue_ms": 1, "spillway.id": "id-1",
    }.items()  # fmt: skip
    assert said["http.request.header.user-agent"] == ["curl/8"]
    assert "error.type" not in said
    (resource,) = otlp.requests[0][2]["resourceSpans"]
    assert {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]} == {
        "service.name": "spillway", "service.instance.id": "n1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "code", "error", "name"),
    [
        ({"status": 404}, Status.STATUS_CODE_UNSET, None, "GET shop"),
        ({"status": 503, "route": ""}, Status.STATUS_CODE_ERROR, "503", "GET"),
        ({"status": None, "total_ms": None}, Status.STATUS_CODE_ERROR, "_OTHER", "GET shop"),
        ({"method": "BREW"}, Status.STATUS_CODE_UNSET, None, "HTTP shop"),
        ({"method": HOSTILE, "path": HOSTILE, "route": HOSTILE}, Status.STATUS_CODE_UNSET, None, f"HTTP {HOSTILE}"),
    ],
)
def test_a_span_says_what_went_wrong(
    acme: Actor, otlp: Receiver, queues: Queues, said: dict[str, Any], code: int, error: str | None, name: str
) -> None:
    (span,) = sent(acme, otlp, queues, line(acme, 1, **{**SAMPLED, "parent_span_id": "", **said}))
    attributes = named(span)
    assert (span.status.code, attributes.get("error.type"), span.name) == (code, error, name)
    assert (span.parent_span_id, span.flags) == (b"", 0x101)
    assert attributes["http.request.method"] == ("GET" if name.startswith("GET") else "_OTHER")
    assert attributes.get("http.request.method_original", "GET") == said.get("method", "GET")


def test_only_what_is_sampled_and_fits_goes_and_only_to_its_account(
    acme: Actor, globex: Actor, operator: Actor, otlp: Receiver, queues: Queues
) -> None:
    row = to_spans(acme, otlp, filter="path:/1,/2,/3")
    unsampled = {**SAMPLED, "sampled": "no"}
    others = line(globex, 1, **SAMPLED, host="secret-of-globex.example")
    spooled(
        queues, line(acme, 1), line(acme, 2, **unsampled), line(acme, 3, **SAMPLED), line(acme, 4, **SAMPLED), others
    )
    deliver(queues, row.pk)
    assert [named(span)["url.path"] for span in read_spans(otlp)] == ["/3"]
    row.refresh_from_db()
    assert (row.sent, row.refused, row.skipped) == (1, 0, 0)
    otlp.requests.clear()
    assert {named(span)["spillway.account"] for span in sent(operator, otlp, queues, others)} == {"globex"}


def test_lines_that_wait_are_not_sent_where_spans_are_wanted_from_now_on(
    acme: Actor, otlp: Receiver, queues: Queues
) -> None:
    row = to_otlp(acme, otlp)
    spooled(queues, line(acme, 1), line(acme, 2, **SAMPLED))
    services.change_forward(
        actor=acme, pk=row.pk, spec={"sends": "spans", "url": f"https://localhost:{otlp.port}/v1/traces"}
    )
    deliver(queues, row.pk)
    spooled(queues, line(acme, 3))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert [named(span)["url.path"] for span in read_spans(otlp)] == ["/2"]
    assert (row.sent, queues.waiting(row.pk, row.positions).bytes) == (1, 0)


def test_spans_that_a_receiver_rejects_are_counted(acme: Actor, otlp: Receiver, queues: Queues) -> None:
    otlp.answer = b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}'
    row = to_spans(acme, otlp)
    spooled(queues, line(acme, 1, **SAMPLED), line(acme, 2, **SAMPLED))
    deliver(queues, row.pk)
    row.refresh_from_db()
    assert (row.sent, row.refused, row.error) == (1, 1, "The receiver refused 1 spans.")


def test_a_line_in_otlp_names_its_trace_where_the_schema_has_it(acme: Actor, otlp: Receiver, queues: Queues) -> None:
    row = to_otlp(acme, otlp)
    spooled(queues, line(acme, 1, **SAMPLED), line(acme, 2))
    deliver(queues, row.pk)
    ((_, _, body),) = otlp.requests
    (resource,) = ParseDict(of_schema(body), ExportLogsServiceRequest()).resource_logs
    first, second = resource.scope_logs[0].log_records
    assert (first.trace_id.hex(), first.span_id.hex(), first.flags) == (TRACE, SPAN, 1)
    assert (second.trace_id, second.span_id, second.flags) == (b"", b"", 0)


def test_a_test_is_a_span(acme: Actor, otlp: Receiver) -> None:
    row = to_spans(acme, otlp)
    assert services.send_test(actor=acme, pk=row.pk).sent == 1
    (span,) = read_spans(otlp)
    assert named(span)["url.path"] == "/this-is-a-test"


@pytest.mark.parametrize(
    "spec", [{"sends": "syslog"}, {"sends": 7}, {"sends": "spans", "url": "syslog+tls://a.example"}]
)
def test_what_cannot_be_sent_is_named(acme: Actor, spec: dict[str, object]) -> None:
    with pytest.raises(Invalid) as caught:
        services.make_forward(actor=acme, name="wrong", spec={"url": "https://a.example/v1/traces", **spec})
    assert [each.pointer for each in caught.value.field_errors] == ["/spec/sends"]


def test_lines_that_wait_are_counted(acme: Actor, otlp: Receiver, queues: Queues, tmp_path: Path) -> None:
    row = to_otlp(acme, otlp)
    spooled(queues, *(line(acme, number) for number in range(2500)))
    tidy(queues, now())
    row.refresh_from_db()
    assert row.lines_waiting == 2500
    deliver(queues, row.pk)
    tidy(queues, now())
    row.refresh_from_db()
    assert (row.sent, row.lines_waiting) == (2500, 0)
    damaged = Queues(tmp_path)
    damaged.append(1, [line(acme, number) for number in range(2500)], now())
    (path,) = tmp_path.rglob("*.lines")
    with path.open("r+b") as opened:
        opened.write(b"damaged")
    assert damaged.lines(1, {}) == 1500, "as many as would be sent"
    assert sum(len(frame.records) for frame in damaged.read(1, {}, 9)) == 1500


def test_lines_that_another_version_left_waiting_are_sent(acme: Actor, tmp_path: Path) -> None:
    """One that knows no traces, and one that knows more than we do."""
    older = {name: value for name, value in row_of(line(acme, 1)).items() if name not in (*SAMPLED, "account")}
    rows = [
        {"account": acme.account.pk, **older},
        {"account": acme.account.pk, **row_of(line(acme, 2)), "colour": "red"},
    ]
    content = gzip.compress("\n".join(map(json.dumps, rows)).encode())
    waiting = tmp_path / "1" / "202611230830.lines"
    waiting.parent.mkdir()
    waiting.write_bytes(HEAD.pack(MARK, len(content), len(rows), zlib.crc32(content)) + content)
    (frame,) = Queues(tmp_path).read(1, {}, 5)
    assert frame.records == (line(acme, 1), line(acme, 2))
