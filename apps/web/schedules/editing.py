"""New and changed schedules, the next ten instants before anything is saved, edit conflicts."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from apps.calendars import CalendarError, describe
from apps.core.clock import now
from apps.core.errors import Invalid, Stale
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Schedule
from apps.definitions.selectors import only
from apps.definitions.selectors import schedules as visible_schedules
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import Typed, save, tell, two_edits
from apps.web.schedules.form import OF_CALENDAR, ScheduleForm, opened, sent, zones
from apps.web.schedules.words import is_timed, next_instants

FORM = "pages/schedules/form.html"
PREVIEW = "pages/schedules/preview.html"


@page
def new(request: PageRequest) -> HttpResponse:
    """A new schedule; `?target=`, `?test=`, `?topic=` and `?account=` fill in a part."""
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """The same page for a schedule that is there."""
    return _form(request, only(visible_schedules(request.actor), pk))


def _form(request: PageRequest, row: Schedule | None) -> HttpResponse:
    request.actor.may_write()
    form = form_for(request, row, visible_schedules(request.actor), partial(_form_of, request))
    if not form.is_bound:
        return show(request, FORM, _page(form) | _stored_instants(form))
    readable = form.is_valid()
    ahead = typed_instants(form)  # before any error is noted: a field with an error is not part of the spec any more
    if "preview" in request.POST:  # the button of a browser without scripts
        _note(form, ahead)
        return show(request, FORM, _page(form) | ahead)
    if readable:
        typed = _typed(form)
        try:
            return _saved(request, typed)
        except Stale:
            return _two_edits(request, form, typed)
        except Invalid as error:
            form.add_errors(error.field_errors)
    else:
        _note(form, ahead)
    return show(request, FORM, _page(form) | ahead, status=422)


def _form_of(request: PageRequest, data: QueryDict | None, stored: Schedule | None) -> ScheduleForm:
    if data is not None:
        return sent(request.actor, stored, data)
    return opened(request.actor, stored, request.GET.dict())


def _note(form: ScheduleForm, ahead: dict[str, Any]) -> None:
    """Put what the calendar refuses beside its field as well."""
    field = ahead.get("error_field")
    if field and not form.has_error(field):
        form.add_error(field, ahead["refused"])


def _typed(form: ScheduleForm) -> Typed:
    got = form.cleaned_data
    return Typed(
        kind="Schedule",
        row=form.row,
        name=got.get("name", ""),
        account=got.get("account"),
        spec=form.spec(),
        version=got.get("version") or 0,
        reason=got.get("reason", ""),
    )


def _saved(request: PageRequest, typed: Typed) -> HttpResponse:
    saved: Schedule = save(request, typed)
    tell(request, typed, saved, f"Schedule {saved.name} is saved.")
    return redirect("web:schedule", pk=saved.pk)


def _two_edits(request: PageRequest, form: ScheduleForm, typed: Typed) -> HttpResponse:
    live = only(visible_schedules(request.actor), typed.row.pk)

    def again(spec: dict[str, Any]) -> dict[str, Any]:
        both = opened(request.actor, live, {}, spec=spec)
        both.initial["reason"] = typed.reason
        return _page(both) | _stored_instants(both)

    return two_edits(request, FORM, typed, live=live, began=form.cleaned_data.get("began", ""), again=again)


def _page(form: ScheduleForm) -> dict[str, Any]:
    return {"form": form, "row": form.row, "zones": zones(), "tests": form.tests}


@post_page
def preview(request: PageRequest) -> HttpResponse:
    """The rail beside the form, for what is typed so far: the sentence and the next ten instants."""
    number = request.POST.get("schedule", "")
    known = number.isascii() and number.isdecimal() and len(number) < 19
    row = only(visible_schedules(request.actor), int(number)) if known else None
    form = sent(request.actor, row, request.POST)
    form.is_valid()
    return show(request, PREVIEW, typed_instants(form) | {"row": row})


def typed_instants(form: ScheduleForm) -> dict[str, Any]:
    """`sentence` and `instants` of what is typed, or the `refused` sentence and the field that is `error_field`."""
    if form.cleaned_data.get("when") == "trigger":
        return {"called": True}
    faulty = [name for name in ("cron", "every", "at", "zone", "starts_at", "ends_at") if form.has_error(name)]
    if faulty:
        return {"refused": " ".join(str(text) for text in form.errors[faulty[0]])}
    try:
        timing = form.timing()
        if not is_timed(timing):
            return {"empty": True}
        return {"sentence": describe(timing), "instants": next_instants(timing, now()), "zone": timing.zone}
    except CalendarError as error:
        return {"refused": error.detail, "error_field": OF_CALENDAR.get(error.field)}


def _stored_instants(form: ScheduleForm) -> dict[str, Any]:
    """The same for a form that nobody sent yet."""
    if form.row is None:
        return {"untouched": True}
    timing = timing_of(form.row)
    if not is_timed(timing):
        return {"called": True}
    try:
        return {"sentence": describe(timing), "instants": next_instants(timing, now()), "zone": timing.zone}
    except CalendarError as error:
        return {"refused": error.detail}
