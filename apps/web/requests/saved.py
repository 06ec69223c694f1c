"""Saved searches: open them, save one, delete one, and the history of those that are measured."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from apps.accounts.actors import Actor
from apps.core.written.numbers import measured, plain
from apps.logs import saved
from apps.logs.models import MetricPoint, SavedSearch
from apps.logs.saved import MEASURED, PERCENTILES, Measure
from apps.logs.searching import EVERY, until_now
from apps.web.kit.field_errors import refusals_in
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import confirmed
from apps.web.kit.shape_fields import ask_for_owner
from apps.web.requests.asked import LENGTHS

SHOWN = 200
USUAL = "6h"
# What people call the numbers of a request.
WORDS = {
    "total_ms": "Total time, ms",
    "queue_ms": "Time in the queue, ms",
    "connect_ms": "Time to connect, ms",
    "response_ms": "Time to the response, ms",
    "request_ms": "Time to receive the request, ms",
    "bytes_in": "Bytes of requests",
    "bytes_out": "Bytes of responses",
}


class SearchForm(forms.Form):
    """A name, a filter, and what is measured; the service checks it."""

    use_required_attribute = False

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if actor.is_operator:
            ask_for_owner(self)
        text = forms.TextInput({"class": "mono long", "autocomplete": "off", "spellcheck": "false"})
        self.fields["/name"] = forms.CharField(label="Name", help_text="Such as slow-checkout.")
        self.fields["/spec/filter"] = forms.CharField(label="Filter", required=False, widget=text)
        self.fields["/spec/metric/measure"] = forms.ChoiceField(
            label="Measure each minute",
            required=False,
            choices=[("", "Nothing"), *Measure.choices],
            help_text="What is measured has a history, a value at /metrics, and alert rules can watch it.",
        )
        self.fields["/spec/metric/of"] = forms.ChoiceField(
            label="Percentile of",
            required=False,
            choices=[(each, WORDS[each]) for each in MEASURED],
            initial="total_ms",
        )
        self.fields["/spec/metric/percentile"] = forms.TypedChoiceField(
            label="Percentile",
            required=False,
            coerce=int,
            choices=[(each, f"{each}th") for each in PERCENTILES],
            initial=95,
        )
        self.fields["/spec/metric/among"] = forms.CharField(
            label="Share among",
            required=False,
            widget=text,
            help_text="A filter; of its requests the share is measured. Default: all requests.",
        )

    def spec(self) -> dict[str, Any]:
        """The document of what was typed; fields of another measure are left out."""
        typed = self.cleaned_data
        measure = typed["/spec/metric/measure"]
        names = {Measure.SHARE: ("among",), Measure.PERCENTILE: ("of", "percentile")}.get(measure, ())
        metric = {"measure": measure, **{name: typed[f"/spec/metric/{name}"] for name in names}} if measure else None
        return {"filter": typed["/spec/filter"], "metric": metric}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every saved search that the actor sees."""
    found = saved.searches(request.actor)
    values = {row.pk: value for row, value, _ in saved.measured(found)}
    rows = [_shown(row, values.get(row.pk)) for row in found[:SHOWN]]
    return show(request, "pages/requests/saved.html", {"rows": rows})


@page
def new(request: PageRequest) -> HttpResponse:
    """Save a search; `?q=` is its filter, `account` whose it is."""
    request.actor.may_write(saved.NOUN)
    form = form_for(request, None, saved.searches(request.actor), partial(_form_of, request))
    if form.is_bound and form.is_valid():
        with refusals_in(form):
            row = saved.save_search(
                actor=request.actor,
                account=form.cleaned_data.get("/account") or None,
                name=form.cleaned_data["/name"],
                spec=form.spec(),
            )
            messages.success(request, f"Search {row.name} is saved.")
            return redirect("web:saved-search", row.pk)
    return show(request, "pages/requests/saved_form.html", {"form": form}, status=422 if form.is_bound else 200)


def _form_of(request: PageRequest, data: QueryDict | None, stored: SavedSearch | None) -> SearchForm:
    if stored is None:
        initial = {"filter": request.GET.get("q", "")}
    else:
        initial = {"filter": stored.filter, "metric/measure": stored.measure, "metric/among": stored.among}
        initial |= {f"metric/{name}": value for name in ("of", "percentile") if (value := getattr(stored, name))}
    said = {f"/spec/{name}": value for name, value in initial.items()}
    said["/account"] = request.GET.get("account", "").replace(EVERY, "")
    return SearchForm(data, actor=request.actor, initial=said)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One search, with its history where it is measured."""
    row = saved.search(request.actor, pk)
    last = request.GET.get("last", USUAL)
    length = LENGTHS.get(last, LENGTHS[USUAL])[1]
    points = saved.history(row, *until_now(length)) if row.measure else []
    values = [point.value for point in points if point.value is not None]
    present = next((value for _, value, _ in saved.measured(saved.searches(request.actor).filter(pk=pk))), None)
    context = {
        **_shown(row, present),
        "lengths": [(word, title, word == last) for word, (title, _) in LENGTHS.items()],
        "chart": chart(row, points) if values else None,
        "highest": plain(max(values)) if values else "",
    }
    return show(request, "pages/requests/saved_detail.html", context)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a search once its name was typed."""
    request.actor.may_write(saved.NOUN)
    row = saved.search(request.actor, pk)
    if not confirmed(request, row.name):
        return redirect("web:saved-search", pk)
    saved.delete_search(actor=request.actor, search_id=pk)
    messages.success(request, f"Search {row.name} is deleted.")
    return redirect("web:saved-searches")


def chart(row: SavedSearch, points: list[MetricPoint]) -> dict[str, Any]:
    """The history, for `components/chart.html`."""
    series = {"label": saved.title(row), "values": [each.value for each in points], "unit": saved.unit(row)}
    return {"x": [int(each.minute.timestamp()) for each in points], "series": [series]}


def _shown(row: SavedSearch, value: float | None) -> dict[str, Any]:
    return {
        "row": row,
        "title": saved.title(row),
        "value": "" if value is None else measured(value, saved.unit(row)),
        "opens": reverse("web:requests") + f"?{urlencode({'q': row.filter, 'account': row.account.name})}",
    }
