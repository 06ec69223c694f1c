"""The form of a schedule, as documents want it; every error goes back to the field that it names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.calendars import Timing, read_timing
from apps.core.errors import FieldError
from apps.definitions.models import CapacityTest, Schedule
from apps.definitions.reading.describing import describe
from apps.definitions.shapes.base.fields import field_at
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.operations.schedule import (
    CATCH_UPS,
    OVERLAPS,
    TARGETS,
    WHEN,
    CapacityTestTarget,
    CatchUpSpec,
    ChangeTarget,
    RetriesSpec,
    RolloutTarget,
    ScheduleSpec,
    TimingSpec,
    TopicTarget,
    WebhookTarget,
    WhenSpec,
)
from apps.fleet.selectors import fleets
from apps.web.kit.edit_conflicts import remember
from apps.web.kit.shape_fields import account_field, words

OFFERED_TESTS = 200
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
MONO = PLAIN | {"class": "mono"}
UNITS = ((1, "seconds"), (60, "minutes"), (3600, "hours"), (86400, "days"))
PLAIN_FIELDS = ("zone", "overlap", "timeout_s", "window_s", "jitter_s")
# Names that people look for: cities, and UTC.
HIDDEN_ZONES = ("Etc/", "SystemV/", "US/", "Canada/", "Brazil/", "Chile/", "Mexico/", "posix", "right/")
NEEDED_WHEN = {"cron": "cron", "every_s": "every", "at": "at"}
NEEDED_TARGET = {"webhook": "url", "topic": "topic", "capacity_test": "test", "rollout": "fleet", "change": "object"}
# Where an error of the document belongs in this form; the field of the longest pointer that fits is taken.
FIELDS = {
    "/name": "name",
    "/account": "account",
    "/spec/when": "when",
    "/spec/when/cron": "cron",
    "/spec/when/every_s": "every",
    "/spec/when/at": "at",
    "/spec/zone": "zone",
    "/spec/starts_at": "starts_at",
    "/spec/ends_at": "ends_at",
    "/spec/window_s": "window_s",
    "/spec/jitter_s": "jitter_s",
    "/spec/overlap": "overlap",
    "/spec/catch_up": "catch_up",
    "/spec/catch_up/window_s": "catch_up_window_s",
    "/spec/retries/attempts": "attempts",
    "/spec/retries/backoff_s": "backoff_s",
    "/spec/timeout_s": "timeout_s",
    "/spec/target": "target",
    "/spec/target/webhook": "url",
    "/spec/target/webhook/body": "body",
    "/spec/target/topic": "topic",
    "/spec/target/topic/message": "message",
    "/spec/target/capacity_test": "test",
    "/spec/target/rollout": "fleet",
    "/spec/target/change": "object",
    "/spec/target/change/restore_after_s": "restore_after_s",
}
# The same for what apps.calendars refuses.
OF_CALENDAR = {name: name for name in ("cron", "at", "zone", "starts_at", "ends_at")} | {"every_s": "every"}


@cache
def zones() -> tuple[str, ...]:
    """The time zones that are offered while typing; every other that exists can be typed as well."""
    named = (name for name in available_timezones() if "/" in name and not name.startswith(HIDDEN_ZONES))
    return ("UTC", *sorted(named))


def _text(shape: type[Shape], name: str, **attrs: str) -> forms.CharField:
    return forms.CharField(**words(shape, name), widget=forms.TextInput(attrs=MONO | attrs))


def _area(shape: type[Shape], name: str, rows: int = 4) -> forms.CharField:
    widget = forms.Textarea(attrs={"class": "mono", "rows": rows, "spellcheck": "false"})
    return forms.CharField(**words(shape, name), strip=False, widget=widget)


def _moment(shape: type[Shape], name: str) -> forms.CharField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})
    return forms.CharField(**words(shape, name), widget=widget)


def _number(shape: type[Shape], name: str) -> forms.IntegerField:
    return forms.IntegerField(**words(shape, name), min_value=0, max_value=10**9)


def _choice(shape: type[Shape], name: str, labels: Mapping[str, str]) -> forms.ChoiceField:
    return forms.ChoiceField(**words(shape, name) | {"required": True}, choices=list(labels.items()))


def _amount(shape: type[Shape], name: str) -> forms.IntegerField:
    field = _number(shape, name)
    field.required = True
    return field


class ScheduleForm(forms.Form):
    """Everything of a schedule; fields of what was not chosen are not read. What values may be is said elsewhere."""

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    began = forms.CharField(required=False, widget=forms.HiddenInput)
    account = account_field("Default: the operator's account.")
    name = forms.CharField(
        label="Name",
        help_text="Lowercase letters, digits and hyphens. Can't be changed later.",
        widget=forms.TextInput(attrs=MONO | {"placeholder": "nightly-test"}),
    )
    when = forms.ChoiceField(label="Runs", choices=list(WHEN.items()), widget=forms.RadioSelect)
    cron = _text(WhenSpec, "cron", placeholder="30 2 * * *", autocapitalize="off")
    every = _number(WhenSpec, "every_s")
    unit = forms.TypedChoiceField(label="Unit", choices=UNITS, coerce=int, required=False, empty_value=None)
    at = _moment(WhenSpec, "at")
    zone = _text(TimingSpec, "zone", list="zones", placeholder="Europe/Berlin")
    starts_at = _moment(TimingSpec, "starts_at")
    ends_at = _moment(TimingSpec, "ends_at")
    target = forms.ChoiceField(label="Action", choices=list(TARGETS.items()), widget=forms.RadioSelect)
    url = _text(WebhookTarget, "url", placeholder="https://jobs.example.com/x")
    body = _area(WebhookTarget, "body")
    topic = _text(TopicTarget, "topic", placeholder="nightly")
    message = _area(TopicTarget, "message")
    test = forms.CharField(
        **words(CapacityTestTarget, "name"), widget=forms.TextInput({"class": "mono", "list": "tests"})
    )
    fleet = forms.ChoiceField(**words(RolloutTarget, "fleet"))
    object = _area(ChangeTarget, "object", rows=8)
    restore_after_s = _number(ChangeTarget, "restore_after_s")
    overlap = _choice(ScheduleSpec, "overlap", OVERLAPS)
    catch_up = _choice(CatchUpSpec, "policy", CATCH_UPS)
    catch_up_window_s = _amount(CatchUpSpec, "window_s")
    attempts = _amount(RetriesSpec, "attempts")
    backoff_s = _amount(RetriesSpec, "backoff_s")
    timeout_s = _amount(ScheduleSpec, "timeout_s")
    window_s = _amount(ScheduleSpec, "window_s")
    jitter_s = _amount(ScheduleSpec, "jitter_s")
    paused = forms.BooleanField(**words(ScheduleSpec, "paused"))
    reason = forms.CharField(
        label="Reason",
        required=False,
        help_text="Recorded in the audit log.",
        widget=forms.TextInput(attrs=PLAIN | {"maxlength": "400"}),
    )

    def __init__(self, actor: Actor, row: Schedule | None, **kwargs: Any) -> None:
        super().__init__(use_required_attribute=False, **kwargs)
        self.row = row
        if row is not None:
            del self.fields["name"]
        if row is not None or not actor.is_operator:
            del self.fields["account"]
        if actor.is_operator:
            self._offer("fleet", [(each.name, each.name) for each in fleets(actor)])
        else:
            del self.fields["fleet"]
            self._offer("target", [each for each in TARGETS.items() if each[0] != "rollout"])
        self._need()
        tests = actor.visible(CapacityTest.objects.order_by("name")).values_list("name", flat=True)
        self.tests = list(dict.fromkeys(tests[:OFFERED_TESTS]))

    def _need(self) -> None:
        """What belongs to the chosen way has to be filled in; before anything was chosen all of it looks so."""
        for field, names in (("when", NEEDED_WHEN), ("target", NEEDED_TARGET)):
            chosen = self.data.get(field) if self.is_bound else None
            for choice, name in names.items():
                if name in self.fields:
                    self.fields[name].required = chosen in (None, choice)
        for each in self.fields.values():
            each.error_messages["required"] = "This field is required."

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            field.choices = choices

    @property
    def has_details(self) -> bool:
        """Whether something is said of failures, missed runs or tolerance that is not usual, or is wrong there."""
        usual = details()
        return any(self[name].errors or str(self[name].value()) != str(usual[name]) for name in usual)

    def timing(self) -> Timing:
        """When it would fall due, as far as it is typed. Raises CalendarError."""
        got = self.cleaned_data
        when = got.get("when")
        return read_timing(
            cron=(got.get("cron") or "") if when == "cron" else "",
            every_s=self._every_s() if when == "every_s" else None,
            at=_local(got.get("at")) if when == "at" else "",
            zone=got.get("zone") or "UTC",
            starts_at=_instant(got.get("starts_at")),
            ends_at=_instant(got.get("ends_at")),
        )

    def _every_s(self) -> int | None:
        every = self.cleaned_data.get("every")
        return None if every is None else every * (self.cleaned_data.get("unit") or 1)

    def spec(self) -> dict[str, Any]:
        """The document's spec, as far as it was filled in; what is left empty gets the document's default."""
        got = self.cleaned_data
        spec: dict[str, Any] = {name: got[name] for name in PLAIN_FIELDS if got.get(name) not in (None, "")}
        spec |= {"when": self._when(), "paused": bool(got.get("paused"))}
        spec |= {name: _utc(got.get(name)) for name in ("starts_at", "ends_at")}
        spec["catch_up"] = _without_nothing(policy=got.get("catch_up") or None, window_s=got.get("catch_up_window_s"))
        spec["retries"] = _without_nothing(attempts=got.get("attempts"), backoff_s=got.get("backoff_s"))
        return spec | {"target": {got.get("target") or "webhook": self._target(got)}}

    def _when(self) -> dict[str, Any]:
        got = self.cleaned_data
        match got.get("when"):
            case "every_s":
                return {"every_s": self._every_s()}
            case "at":
                return {"at": _local(got.get("at")) or None}
            case "trigger":
                return {"trigger": True}
        return {"cron": got.get("cron") or None}

    def _target(self, got: Mapping[str, Any]) -> dict[str, Any]:
        match got.get("target"):
            case "topic":
                return {"topic": got.get("topic") or None, "message": _lines(got.get("message"))}
            case "capacity_test":
                return {"name": got.get("test") or None}
            case "rollout":
                return {"fleet": got.get("fleet") or None}
            case "change":
                return {"object": got.get("object") or None} | _without_nothing(
                    restore_after_s=got.get("restore_after_s")
                )
        return {"url": got.get("url") or None, "body": _lines(got.get("body"))}

    def clean_object(self) -> Any:
        """The object of a change, read from JSON."""
        text = self.cleaned_data["object"].strip()
        if self.data.get("target") != "change" or not text:
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from error
        if not isinstance(found, dict):
            raise forms.ValidationError('Start with { and give "kind", "name" and "spec".')
        return found

    def add_errors(self, field_errors: Iterable[FieldError]) -> None:
        """Put each error beside the field that it names; what no field shows goes to the top of the form."""
        for field_error in field_errors:
            pointer = field_error.pointer
            while pointer and pointer not in FIELDS:
                pointer = pointer.rpartition("/")[0]
            field = FIELDS.get(pointer)
            if field not in self.fields:
                self.add_error(None, field_error.detail)
            elif not self.has_error(field):
                self.add_error(field, field_error.detail)


def _lines(text: str | None) -> str:
    """What was typed, with the line ends of documents."""
    return (text or "").replace("\r\n", "\n")


def _without_nothing(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _local(text: str | None) -> str:
    """A local time with its seconds; browsers leave them out where they are 0."""
    text = (text or "").strip()
    return f"{text}:00" if len(text) == len("2027-01-31T00:00") else text


def _utc(text: str | None) -> str | None:
    return f"{_local(text)}Z" if text and text.strip() else None


def _instant(text: str | None) -> datetime | None:
    """A moment as typed, None for an empty or unreadable one: that is said by the document."""
    try:
        return datetime.fromisoformat(_local(text)).replace(tzinfo=UTC) if text else None
    except ValueError:
        return None


def opened(actor: Actor, row: Schedule | None, start: Mapping[str, str], spec: Any = None) -> ScheduleForm:
    """The form before anything was sent: what is stored, `spec` instead of it, or a beginning for a new one."""
    initial = initial_of(spec or describe(row), row) if row else blank(actor, start)
    return ScheduleForm(actor, row, initial=initial)


def sent(actor: Actor, row: Schedule | None, data: QueryDict) -> ScheduleForm:
    """The form as somebody sent it."""
    return ScheduleForm(actor, row, data=data)


def blank(actor: Actor, start: Mapping[str, str]) -> dict[str, Any]:
    """What a new form begins with; `start` (query parameters) may choose the target and name a capacity test."""
    first: dict[str, Any] = {"when": "cron", "cron": "30 2 * * *", "target": "webhook", "every": 15, "unit": 60}
    first |= {"zone": field_at(ScheduleSpec, "zone").default} | details() | {"account": actor.account.name}
    if start.get("target") in TARGETS:
        first["target"] = start["target"]
    return first | {name: start[name][:63] for name in ("test", "account", "topic") if start.get(name)}


def details() -> dict[str, Any]:
    """What a schedule does at failures, about missed runs, and how exact it is, where nobody says anything else."""
    usual = {name: field_at(ScheduleSpec, name).default for name in PLAIN_FIELDS if name != "zone"}
    usual |= {"catch_up": CatchUpSpec().policy, "catch_up_window_s": CatchUpSpec().window_s}
    return usual | write(RetriesSpec, RetriesSpec())


def initial_of(spec: Mapping[str, Any], row: Schedule) -> dict[str, Any]:
    """What the form of this schedule begins with when it shows `spec`."""
    when = spec["when"]
    first: dict[str, Any] = {name: spec[name] for name in (*PLAIN_FIELDS, "paused") if name in spec}
    first |= {"when": next(iter(when)), "cron": when.get("cron", ""), "at": when.get("at", "")}
    first["every"], first["unit"] = _in_units(when.get("every_s"))
    first |= {name: (spec.get(name) or "").removesuffix("Z") for name in ("starts_at", "ends_at")}
    first |= {"catch_up": spec["catch_up"]["policy"], "catch_up_window_s": spec["catch_up"]["window_s"]}
    first |= spec["retries"] | _target_fields(*next(iter(spec["target"].items())))
    return first | {"version": row.version, "began": remember(row)}


def _in_units(seconds: int | None) -> tuple[int | None, int]:
    """Whole seconds in the largest unit that needs no fraction."""
    unit = next((unit for unit, _ in reversed(UNITS) if seconds and seconds % unit == 0), 1)
    return (seconds // unit if seconds else None), unit


def _target_fields(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that show a target."""
    if kind == "change":
        text = json.dumps(document.get("object"), indent=2, ensure_ascii=False)
        return {"target": kind, "object": text, "restore_after_s": document.get("restore_after_s")}
    named = {"name": "test"} if kind == "capacity_test" else {}
    return {"target": kind} | {named.get(name, name): value for name, value in document.items()}
