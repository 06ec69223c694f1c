"""The shape of a Schedule: when something should happen, and what.

What `when` means is said by apps/calendars; what a target may do is asked when it is booked and again when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from apps.calendars import CalendarError, Timing, read_timing
from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.called_urls import Refused, read_url
from apps.core.errors import FieldError
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.shape import About, Data, Grammar, Shape
from apps.definitions.shapes.base.words import Boolean, ByName, Instant, Name, one_of, text, whole

DAY_S = 86_400
WHEN = {"cron": "Cron", "every_s": "At a fixed interval", "at": "Once", "trigger": "When a trigger is called"}
TARGETS = {
    "webhook": "Webhook",
    "topic": "Topic",
    "capacity_test": "Capacity test",
    "rollout": "Rollout",
    "change": "Change",
}
OVERLAPS = {"skip": "Skip the new run", "queue": "Queue the new run (at most one)", "allow": "Run both"}
CATCH_UPS = {"once": "Run once", "all": "Run each missed run", "skip": "Skip missed runs"}


def _line(longest: int) -> Callable[[object], str]:
    """Plain text on one line; what it means is the calendar's to say."""

    def read_line(value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            raise GrammarError("not_text", f"Write this value as text of 1 to {longest} characters.")
        if not value.isascii() or not value.isprintable():
            raise GrammarError("not_ascii", "Use plain ASCII letters, digits and signs, without line breaks.")
        return value

    return read_line


def _true(value: object) -> bool:
    if value is not True:
        raise GrammarError("choice", "Set trigger: true, or fill in cron, every_s or at.")
    return True


def _url(value: object) -> str:
    """Any URL; whether the installation calls it is asked where the document is read."""
    try:
        read_url(value if isinstance(value, str) else "", schemes=("https", "http"))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return str(value)


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise GrammarError("not_object", "Write an object with named fields here.")
    return dict(value)


@dataclass(frozen=True, slots=True)
class WhenSpec(Shape):
    """When: exactly one of the four; `cron` has five fields or six, the first of which are seconds."""

    component: ClassVar[str] = "ScheduleWhen"

    cron: Annotated[
        str,
        text(_line(200), "a cron expression", 200),
        About(
            "Five or six fields; with six, the first one is seconds.",
            "Cron expression",
            "",
            "30 2 * * *",
            note="`30 2 * * *`, `*/10 * * * * *`, `@daily`.",
            absent_when_empty=True,
        ),
    ] = ""
    every_s: Annotated[
        int | None,
        whole(1, 366 * DAY_S),
        About(
            "Seconds between two runs.",
            "Every",
            "",
            note="Seconds from one instant to the next.",
            absent_when_empty=True,
        ),
    ] = None
    at: Annotated[
        str,
        text(_line(19), "a local time", 19),
        About(
            "A local time for a single run.",
            "On",
            "Local time in the time zone.",
            note="Once: a local time, 2026-12-01T10:00:00.",
            absent_when_empty=True,
        ),
    ] = ""
    trigger: Annotated[
        bool | None,
        Grammar(_true, {"type": "boolean"}),
        About("Only its triggers start it.", note="true: only its triggers run it.", absent_when_empty=True),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Exactly one of them."""
        if len(WHEN.keys() & sent.keys()) != 1:
            yield FieldError("", "one_of", "Use exactly one of cron, every_s, at and trigger.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSpec(Shape):
    """A timing that somebody thinks about."""

    component: ClassVar[str] = "Timing"

    when: Annotated[WhenSpec, About("When it runs.", missing="Fill in cron, every_s or at, or set trigger: true.")]
    zone: Annotated[
        str,
        text(_line(63), "a time zone", 63),
        About(
            "The time zone of the timing, such as Europe/Berlin.",
            "Time zone",
            "The time zone of days and hours.",
            note="Such as Europe/Berlin; UTC if left out.",
        ),
    ] = "UTC"
    starts_at: Annotated[
        Instant | None, About("It does not run before this time.", "Not before (UTC)", "Default: now.")
    ] = None
    ends_at: Annotated[
        Instant | None,
        About(
            "It does not run at or after this time.",
            "End date (UTC)",
            "Leave empty for no end.",
            note="No instant at it or after it.",
        ),
    ] = None

    @property
    def timing(self) -> Timing:
        """The timing as the calendar knows it. Raises CalendarError."""
        when = self.when
        return read_timing(
            cron=when.cron,
            every_s=when.every_s,
            at=when.at,
            zone=self.zone,
            starts_at=self.starts_at,
            ends_at=self.ends_at,
        )

    def contradictions(self) -> Iterable[FieldError]:
        """What the calendar says."""
        try:
            self.timing  # noqa: B018 # asked for its error
        except CalendarError as error:
            field = f"when/{error.field}" if error.field in WHEN else error.field
            yield FieldError(f"/{field}", error.code, error.detail)


@dataclass(frozen=True, slots=True)
class CatchUpSpec(Shape):
    """What becomes of instants that nobody was there for, if they are not older than the window."""

    component: ClassVar[str] = "CatchUp"

    policy: Annotated[
        str, one_of("skip", "once", "all", labels=CATCH_UPS), About("What happens to missed runs.", "Missed runs", "")
    ] = "once"
    window_s: Annotated[
        int,
        whole(0, 7 * DAY_S),
        About("Seconds; older runs count as missed.", "Catch up within", "Older runs count as missed."),
    ] = 300


@dataclass(frozen=True, slots=True)
class RetriesSpec(Shape):
    """How often it is tried, and how long it waits after the first failure; the wait doubles, up to an hour."""

    component: ClassVar[str] = "Retries"

    attempts: Annotated[
        int,
        whole(1, 20),
        About("The number of attempts.", "Attempts", "After the last attempt the run fails until someone retries it."),
    ] = 3
    backoff_s: Annotated[
        int,
        whole(1, 3600),
        About("Seconds after the first failure.", "First retry delay", "Doubles after each attempt."),
    ] = 5


@dataclass(frozen=True, slots=True)
class WebhookTarget(Shape):
    """A signed POST to a public address."""

    url: Annotated[
        str,
        text(_url, "a URL", 2048),
        About(
            "The URL to call.",
            "URL",
            "Receives a signed POST. Private addresses are rejected.",
            "https://jobs.example.com/x",
        ),
    ]
    body: Annotated[
        str,
        text(grammar.body, "text", grammar.MAX_BODY, blank=True),
        About(
            "Sent unchanged. Default: a small JSON document.",
            "Body",
            "Sent unchanged. Default: a small JSON document with the schedule and the time.",
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class TopicTarget(Shape):
    """A message to subscribers of the account."""

    topic: Annotated[
        Name,
        About(
            "The name of the topic.",
            "Topic",
            "Applications of the account read it with GET /api/v1/topics/<name>/messages.",
        ),
    ]
    message: Annotated[
        str,
        text(grammar.body, "text", grammar.MAX_BODY, blank=True),
        About("The text of the message.", "Message", "Delivered unchanged to every reader."),
    ] = ""


@dataclass(frozen=True, slots=True)
class CapacityTestTarget(Shape):
    """A run of a capacity test; a late one is never caught up."""

    name: Annotated[Name, About("The capacity test to run.", "Capacity test", "")]


@dataclass(frozen=True, slots=True)
class RolloutTarget(Shape):
    """Look at every node of a fleet and push what differs; for operators."""

    fleet: Annotated[ByName, About("The fleet to push.", "Fleet", "")]


@dataclass(frozen=True, slots=True)
class ChangeTarget(Shape):
    """A change of an object (kind, name, account, spec), taken back after so many seconds if it says so."""

    object: Annotated[
        dict[str, Any],
        Grammar(_object, {"type": "object", "title": "an object as `apply` takes it"}),
        About(
            "The new definition of the object.",
            "Object",
            "JSON with kind, name and spec, as for apply. It is validated now and again at each run.",
        ),
    ]
    restore_after_s: Annotated[
        int | None,
        whole(1, 30 * DAY_S),
        About(
            "Seconds until the old value is restored; null keeps the change.",
            "Restore the old value after",
            "Leave empty to keep the change. The run does not restore it if someone else has changed the object since.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class TargetSpec(Shape):
    """What happens: exactly one of the five."""

    component: ClassVar[str] = "ScheduleTarget"

    webhook: Annotated[WebhookTarget | None, About("Calls a URL.", absent_when_empty=True)] = None
    topic: Annotated[
        TopicTarget | None, About("Sends a message to the readers of a topic.", absent_when_empty=True)
    ] = None
    capacity_test: Annotated[CapacityTestTarget | None, About("Runs a capacity test.", absent_when_empty=True)] = None
    rollout: Annotated[RolloutTarget | None, About("Pushes a fleet.", absent_when_empty=True)] = None
    change: Annotated[ChangeTarget | None, About("Changes an object.", absent_when_empty=True)] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Exactly one of them."""
        if len(TARGETS.keys() & sent.keys()) != 1:
            yield FieldError("", "one_of", ONE_TARGET)


ONE_TARGET = f"Use exactly one of {', '.join(TARGETS)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec(TimingSpec):
    """When something happens, and what."""

    component: ClassVar[str] = ""

    window_s: Annotated[
        int,
        whole(0, DAY_S),
        About(
            "The run starts within this time, always with the same delay.",
            "Start window",
            "Spreads load: the run starts at any time within this window.",
            note="It may come so much later, each time the same.",
        ),
    ] = 0
    jitter_s: Annotated[
        int,
        whole(0, DAY_S),
        About(
            "The run starts within this time, each time with another delay.",
            "Random delay (jitter)",
            "Maximum delay. It differs for each run.",
            note="It may come so much later, each time another.",
        ),
    ] = 0
    overlap: Annotated[
        str,
        one_of(labels=OVERLAPS),
        About(
            "What happens to a run that is due while the previous one is active.",
            "If the previous run is still active",
            "",
        ),
    ] = "skip"
    catch_up: Annotated[CatchUpSpec, About("What happens to missed runs.")] = CatchUpSpec()
    retries: Annotated[RetriesSpec, About("What happens after a failure.")] = RetriesSpec()
    timeout_s: Annotated[
        int,
        whole(1, 300),
        About(
            "The time a webhook has to respond.",
            "Timeout per attempt",
            "",
            note="How long a webhook may take to respond.",
        ),
    ] = 30
    paused: Annotated[
        Boolean | None,
        About("Whether the schedule is paused.", "Paused", "", stays=False, note="Left out, it stays as it is."),
    ] = None
    target: Annotated[TargetSpec, About("The action of the schedule.", missing=ONE_TARGET)]

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """What the calendar says, also where other fields are wrong."""
        field_errors: list[FieldError] = []
        known = {field.name for field in fields_of(TimingSpec)}
        read(TimingSpec, {name: value for name, value in sent.items() if name in known}, "", field_errors)
        return field_errors
