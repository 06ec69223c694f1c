"""Request lines, what is counted of them, and what an account wants of its request log."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.logs.filters import LONGEST
from apps.logs.models import LogForward as Forward
from apps.logs.patterns import PATTERNS
from apps.logs.saved import MEASURED, PERCENTILES, Measure
from apps.logs.selectors import COUNTED, STATUS_CLASSES


def _ms() -> serializers.Field[Any, Any, Any, Any]:
    return words.whole(0, 2**31, allow_null=True)


class RequestLine(words.Shown):
    """One request, or one connection of a listener that knows no requests; empty is what it does not have."""

    id = words.text(64)
    time = words.instant()
    kind = words.word(["request", "connection"])
    parent_id = words.text(200, help_text="The id that the client sent.")
    account = words.name()
    node = words.text(63)
    fleet = words.text(63)
    load_balancer = words.text(200)
    listener = words.text(200)
    route = words.text(400)
    pool = words.text(200)
    server = words.text(200)
    region = words.text(200, help_text="Where it was served.")
    home_region = words.text(200, help_text="Where the client came in.")
    why = words.text(40, help_text="Why it was not served as usual.")
    decided_by = words.text(200, help_text="The policy, list or limit that decided so.")
    status = words.whole(0, 999, allow_null=True)
    termination = words.text(8, help_text="HAProxy's termination state.")
    ended = words.text(200, help_text="The termination state as a sentence; empty where the request ended well.")
    queue_ms, connect_ms, response_ms, total_ms, request_ms = _ms(), _ms(), _ms(), _ms(), _ms()
    bytes_in = words.count()
    bytes_out = words.count()
    tls = words.text(16)
    cipher = words.text(80)
    client = words.text(64)
    method = words.text(40)
    host = words.text(300)
    path = words.text(8192)
    query = words.text(8192)
    headers = serializers.DictField(child=words.text(8192))
    test_run = words.text(80)
    trace_id = words.text(32)
    span_id = words.text(16, help_text="Of the load balancer; servers got it as their parent.")
    parent_span_id = words.text(16, help_text="Of the client.")
    sampled = words.text(3, help_text="`yes` or `no`: whether a span is wanted; empty without a trace.")


class Answer(words.Shown):
    """What nodes have not told yet of the time that was asked for."""

    missing = serializers.CharField(help_text="Why not all lines are here, as a sentence; empty where all are.")


class RequestLinePage(Answer):
    """A page of a list of RequestLine."""

    items = RequestLine(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class LineCounts(words.Shown):
    """Lines from `start` until one step later, by status class."""

    start = words.instant()
    counts = serializers.DictField(child=words.count(), help_text=f"{', '.join(STATUS_CLASSES)}.")


class LineHistogram(Answer):
    """Lines over time."""

    step_s = words.whole(1, 86400)
    bins = LineCounts(many=True)


class FacetValue(words.Shown):
    """A value of a field and how many lines have it."""

    value = words.text(8192)
    lines = words.count()


class LineFacet(words.Shown):
    """The most frequent values of a field."""

    field = words.word(COUNTED)
    values = FacetValue(many=True)


class LineFacets(Answer):
    """Facets in the order in which they were asked for."""

    facets = LineFacet(many=True)


class PatternRow(words.Shown):
    """A group of lines: what is under each column, and a filter that finds them."""

    cells = serializers.ListField(child=serializers.CharField())
    filter = serializers.CharField()


class RequestPattern(Answer):
    """What a prepared search finds: `sentences` name what stands out and are empty where nothing does."""

    name = words.word(list(PATTERNS))
    title = serializers.CharField()
    about = serializers.CharField()
    sentences = serializers.ListField(child=serializers.CharField())
    columns = serializers.ListField(child=serializers.CharField())
    rows = PatternRow(many=True)


class SearchMetric(serializers.Serializer[Any]):
    """What is measured each minute: `of` and `percentile` are for a percentile, `among` for a share."""

    measure = words.word(Measure.values)
    of = words.word(MEASURED, required=False)
    percentile = serializers.ChoiceField(choices=PERCENTILES, required=False)
    among = serializers.CharField(max_length=LONGEST, required=False, allow_blank=True)


class SavedSearchSpec(serializers.Serializer[Any]):
    """A filter, and what is measured of it."""

    filter = serializers.CharField(max_length=LONGEST, required=False, allow_blank=True)
    metric = SearchMetric(required=False, allow_null=True)


class SavedSearch(words.Shown):
    """A filter under a name."""

    id = words.ident()
    account = words.name(source="account.name")
    name = words.name()
    spec = SavedSearchSpec()
    unit = serializers.CharField(allow_null=True)
    measured_until = words.instant(allow_null=True)
    created_at = words.instant()
    created_by = words.text(150)


class CreateSavedSearch(words.Sent):
    """A new saved search."""

    name = words.name()
    spec = SavedSearchSpec()
    account = words.name(required=False)


class MetricMinute(words.Shown):
    """One minute; `value` is null where nothing could be measured."""

    minute = words.instant()
    lines = words.count()
    value = serializers.FloatField(allow_null=True)


class MetricHistory(words.Shown):
    """The minutes of a metric, the oldest first."""

    unit = serializers.CharField(allow_null=True)
    points = MetricMinute(many=True)


class LogQuestion(words.Sent):
    """One SELECT over the table `requests`, which holds the account's lines from `since` until before `until`."""

    sql = serializers.CharField(max_length=20_000)
    since = words.instant(required=False)
    until = words.instant(required=False)
    account = words.name(required=False)


class LogAnswer(Answer):
    """Rows of plain values; `truncated` when there were more."""

    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=words.Anything()))
    truncated = serializers.BooleanField()


class LineDeletion(words.Sent):
    """Lines of whole hours that ended before this time go."""

    before = words.instant()
    account = words.name(required=False)


class LinesDeleted(words.Shown):
    """How many lines went."""

    lines = words.count()


class LogSettingsSpec(serializers.Serializer[Any]):
    """How long lines are kept, whether of clients only the network is, and the names whose values are not."""

    retention_days = words.whole(1, 400, required=False)
    mask_addresses = serializers.BooleanField(required=False)
    mask_values_of = serializers.ListField(
        child=serializers.CharField(max_length=63),
        max_length=50,
        required=False,
        help_text="Names of parameters and headers, such as `token`: their values are stored as `***`.",
    )


class LogSettings(words.Shown):
    """What an account wants of its request log, and what it has stored."""

    account = words.name()
    version = words.whole(1, 2**31)
    spec = LogSettingsSpec()
    lines = words.count()
    bytes = words.count()
    oldest = words.instant(allow_null=True)


class LogSettingsPatch(words.Sent):
    """What changes of the settings."""

    spec = LogSettingsSpec()


class LogForwardSpec(serializers.Serializer[Any]):
    """Where lines go, and which; of a PATCH what is left out stays."""

    url = serializers.CharField(
        max_length=2048, help_text="`syslog+tls://host:6514`, `https://…/v1/logs` or `/v1/traces`."
    )
    sends = words.word(
        Forward.Sends.values, required=False, help_text="Each line, or a span of each request sampled in a trace."
    )
    filter = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    ca = serializers.CharField(
        max_length=65536,
        required=False,
        allow_blank=True,
        help_text="Certificates in PEM form that are trusted instead of those of the console.",
    )
    header_name = serializers.CharField(max_length=80, required=False, allow_blank=True)
    enabled = serializers.BooleanField(required=False)


class LogForwardSentSpec(LogForwardSpec):
    """The same with the value of the header, which is never shown again."""

    header_value = serializers.CharField(max_length=4096, required=False, allow_blank=True)


class LogForwardPatchSpec(LogForwardSentSpec):
    """What is changed."""

    url = serializers.CharField(max_length=2048, required=False)


class LogForward(words.Shown):
    """A log system that request lines go on to, and how it does."""

    kind = words.word(["LogForward"])
    id = words.ident()
    name = words.name()
    account = words.name(source="account.name")
    version = words.whole(1, 2**31)
    url = words.Url("log-forwards", help_text="The URL of the log forward.")
    spec = LogForwardSpec()
    sent = words.count()
    refused = words.count()
    skipped = words.count()
    sent_at = words.instant(allow_null=True)
    failing_since = words.instant(allow_null=True)
    error = words.text(400)
    created_at = words.instant()
    created_by = words.text(150)


class LogForwardEnvelope(words.Sent):
    """A new log forward."""

    kind = words.word(["LogForward"], required=False)
    name = words.name()
    account = words.name(required=False)
    spec = LogForwardSentSpec()


class LogForwardPatch(words.Sent):
    """Some of a log forward anew."""

    kind = words.word(["LogForward"], required=False)
    name = words.name(required=False)
    account = words.name(required=False)
    spec = LogForwardPatchSpec()


class LogForwardTested(words.Shown):
    """What came of a test."""

    delivered = serializers.BooleanField()
    error = words.text(400)
