"""The kind Schedule: when something should happen and what, read from its document and written out again.

`{when: {cron | every_s | at | trigger}, zone, starts_at, ends_at, window_s, jitter_s, overlap, catch_up: {policy,
window_s}, retries: {attempts, backoff_s}, timeout_s, paused, target: {<kind>: {…}}}`. What `when` means is said by
apps/calendars; what a target may do is asked when it is booked and again when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.calendars import CalendarError, Timing, read_timing
from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.definitions.reading.fields import Reader, boolean, integer
from apps.definitions.reading.outside import called_url
from apps.definitions.reading.specs import ScheduleSpec, TargetSpec
from apps.definitions.shapes.base.words import instant_text
from apps.definitions.shapes.base.words import read_instant as instant

DAY_S = 86_400
LONGEST_RATE_S, LONGEST_CATCH_UP_S, LONGEST_RESTORE_S = 366 * DAY_S, 7 * DAY_S, 30 * DAY_S
WHEN = ("cron", "every_s", "at", "trigger")
TARGETS = tuple(Schedule.TargetKind.values)
# Keys would stand in plain text in the schedule, and nobody's rights should change while nobody looks.
UNCHANGEABLE = ("Account", "Certificate", "Schedule")
ReadObject = Callable[..., Any]


def actor_of_schedule(account: Account, name: str) -> Actor:
    """Who does what a schedule says: an editor of its account, whoever wrote it."""
    return Actor(f"schedule {name}"[:150], account, Membership.Role.EDITOR)


def read_schedule(reader: Reader, read_object: ReadObject) -> ScheduleSpec:
    """The specification of a schedule; `read_object` reads the object that a change holds."""
    timing = _timing(reader)
    catch_up, retries = _part(reader, "catch_up"), _part(reader, "retries")
    spec = ScheduleSpec(
        cron=timing.cron,
        every_s=timing.every_s,
        at=timing.at,
        zone=timing.zone,
        starts_at=timing.starts_at,
        ends_at=timing.ends_at,
        window_s=reader.optional("window_s", integer(0, DAY_S), 0),
        jitter_s=reader.optional("jitter_s", integer(0, DAY_S), 0),
        overlap=reader.optional("overlap", _word(Schedule.Overlap.values), "skip"),
        catch_up=catch_up.optional("policy", _word(Schedule.CatchUp.values), "once"),
        catch_up_window_s=catch_up.optional("window_s", integer(0, LONGEST_CATCH_UP_S), 300),
        attempts=retries.optional("attempts", integer(1, 20), 3),
        backoff_s=retries.optional("backoff_s", integer(1, 3600), 5),
        timeout_s=reader.optional("timeout_s", integer(1, 300), 30),
        paused=reader.optional("paused", boolean, None),
        target=_target(reader, read_object),
    )
    catch_up.close()
    retries.close()
    return spec


@dataclass(frozen=True, slots=True)
class _When:
    cron: str = ""
    every_s: int | None = None
    at: str = ""


def read_timing_of(data: object) -> Timing:
    """`{when, zone?, starts_at?, ends_at?}` by itself, to look at its instants. Raises Invalid."""
    field_errors: list[FieldError] = []
    reader = Reader(data, "", field_errors)
    timing = _timing(reader)
    reader.close()
    if field_errors:
        raise Invalid(field_errors)
    return timing


def _timing(reader: Reader) -> Timing:
    before = len(reader.field_errors)
    when = _when(reader)
    zone = reader.optional("zone", _text(63), "UTC")
    starts_at = reader.optional("starts_at", instant, None)
    ends_at = reader.optional("ends_at", instant, None)
    if len(reader.field_errors) > before:
        return Timing()
    try:
        return read_timing(
            cron=when.cron, every_s=when.every_s, at=when.at, zone=zone, starts_at=starts_at, ends_at=ends_at
        )
    except CalendarError as error:
        pointer = f"when/{error.field}" if error.field in WHEN else error.field
        reader.field_errors.append(FieldError(f"{reader.pointer}/{pointer}", error.code, error.detail))
        return Timing()


def _when(reader: Reader) -> _When:
    child = reader.child("when")
    if child is None:
        reader.add_error("when", "missing", "Fill in cron, every_s or at, or set trigger: true.")
        return _When()
    if len([field for field in WHEN if child.has(field)]) != 1:
        child.add_error("", "one_of", "Use exactly one of cron, every_s, at and trigger.")
    found = _When(
        child.optional("cron", _text(200), ""),
        child.optional("every_s", integer(1, LONGEST_RATE_S), None),
        child.optional("at", _text(19), ""),
    )
    child.optional("trigger", _true, default=True)
    child.close()
    return found


def _true(value: object) -> bool:
    if value is not True:
        raise GrammarError("choice", "Set trigger: true, or fill in cron, every_s or at.")
    return True


def _text(longest: int) -> Callable[[object], str]:
    """Plain text on one line; what it means is the calendar's to say."""

    def allowed(value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            raise GrammarError("not_text", f"Write this value as text of 1 to {longest} characters.")
        if not value.isascii() or not value.isprintable():
            raise GrammarError("not_ascii", "Use plain ASCII letters, digits and signs, without line breaks.")
        return value

    return allowed


def _word(words: list[str]) -> Callable[[object], str]:
    def allowed(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise GrammarError("choice", f"Use one of {', '.join(words)}.")

    return allowed


def _part(reader: Reader, field: str) -> Reader:
    return reader.child(field) or Reader({}, f"{reader.pointer}/{field}", reader.field_errors)


def _target(reader: Reader, read_object: ReadObject) -> TargetSpec:
    child = reader.child("target")
    chosen = [kind for kind in TARGETS if child and child.has(kind)]
    if child is None or len(chosen) != 1:
        reader.add_error("target", "one_of", f"Use exactly one of {', '.join(TARGETS)}.")
    document: dict[str, Any] = {}
    if child is not None:
        if len(chosen) == 1 and (inner := child.child(chosen[0])):
            document = _TARGETS[chosen[0]](inner, read_object)
            inner.close()
        child.close()
    return TargetSpec(chosen[0] if chosen else "", document)


def _webhook(reader: Reader, _: ReadObject) -> dict[str, Any]:
    return {"url": reader.required("url", called_url), "body": reader.optional("body", grammar.body, "")}


def _topic(reader: Reader, _: ReadObject) -> dict[str, Any]:
    return {
        "topic": reader.required("topic", grammar.name),
        "message": reader.optional("message", grammar.body, ""),
    }


def _capacity_test(reader: Reader, _: ReadObject) -> dict[str, Any]:
    return {"name": reader.required("name", grammar.name)}


def _rollout(reader: Reader, _: ReadObject) -> dict[str, Any]:
    return {"fleet": reader.required("fleet", grammar.name)}


def _change(reader: Reader, read_object: ReadObject) -> dict[str, Any]:
    after = reader.optional("restore_after_s", integer(1, LONGEST_RESTORE_S), None)
    sent: Any = reader.required("object", lambda value: value)
    if reader.has("object"):
        try:
            found = read_object(sent, pointer=f"{reader.pointer}/object")
        except Invalid as invalid:
            reader.field_errors.extend(invalid.field_errors)
        else:
            if found.kind in UNCHANGEABLE:
                detail = f"A schedule cannot change a {found.kind}; change it manually or with apply."
                reader.field_errors.append(FieldError(f"{reader.pointer}/object/kind", "kind", detail))
    return {"object": sent, "restore_after_s": after}


_TARGETS: dict[str, Callable[[Reader, ReadObject], dict[str, Any]]] = {
    "webhook": _webhook,
    "topic": _topic,
    "capacity_test": _capacity_test,
    "rollout": _rollout,
    "change": _change,
}


def schedule_document(spec: ScheduleSpec) -> dict[str, Any]:
    """The document of a specification; `paused` only where it says so."""
    found = _document(spec, spec.target.kind, spec.target.document)
    return found | ({} if spec.paused is None else {"paused": spec.paused})


def schedule_row(row: Schedule) -> dict[str, Any]:
    """The document of a stored schedule."""
    return _document(row, str(row.target_kind), row.target) | {"paused": row.paused}


def _document(source: Schedule | ScheduleSpec, kind: str, target: dict[str, Any]) -> dict[str, Any]:
    return {
        "when": when_document(timing_of(source)),
        "zone": source.zone,
        "starts_at": instant_text(source.starts_at),
        "ends_at": instant_text(source.ends_at),
        "window_s": source.window_s,
        "jitter_s": source.jitter_s,
        "overlap": str(source.overlap),
        "catch_up": {"policy": str(source.catch_up), "window_s": source.catch_up_window_s},
        "retries": {"attempts": source.attempts, "backoff_s": source.backoff_s},
        "timeout_s": source.timeout_s,
        "target": {kind: target},
    }


def when_document(timing: Timing) -> dict[str, Any]:
    """Which of the four ways a timing is."""
    if timing.cron:
        return {"cron": timing.cron}
    if timing.every_s is not None:
        return {"every_s": timing.every_s}
    return {"at": timing.at} if timing.at else {"trigger": True}
