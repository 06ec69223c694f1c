"""What would happen to a request: a form of its parts, and who gets it, who does not, and why."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse

from apps.core.errors import Invalid
from apps.definitions.previewing.tracing import read_question, trace_request, waits_for_verification
from apps.web.kit.pages import PageRequest, page, show

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEADERS = {"rows": 3, "placeholder": "X-Canary: yes", "spellcheck": "false", "class": "mono"}


class TraceForm(forms.Form):
    """A request as a client sends it."""

    method = forms.ChoiceField(choices=[(word, word) for word in METHODS], required=False)
    scheme = forms.ChoiceField(choices=[("https", "https"), ("http", "http")], required=False)
    host = forms.CharField(widget=forms.TextInput({"placeholder": "shop.example.com", "class": "mono"}))
    path = forms.CharField(required=False, widget=forms.TextInput({"placeholder": "/", "class": "mono"}))
    headers = forms.CharField(required=False, widget=forms.Textarea(HEADERS), help_text="One per line.")

    client = forms.CharField(
        required=False,
        widget=forms.TextInput({"placeholder": "192.0.2.7", "class": "mono"}),
        help_text="The client's address, for routes, policies and listeners that look at it.",
    )

    def question(self) -> dict[str, Any]:
        """The request as the API takes it."""
        got = self.cleaned_data
        lines = [line.partition(":") for line in got["headers"].splitlines() if line.strip()]
        headers = {name.strip(): value.strip() for name, _, value in lines}
        found = {"host": got["host"], "path": got["path"] or "/", "method": got["method"] or "GET", "headers": headers}
        found |= {"client": got["client"].strip()} if got["client"].strip() else {}
        return found | {"scheme": got["scheme"] or "https"}

    def attach_errors(self, error: Invalid) -> None:
        """Put each error beside its field."""
        for field_error in error.field_errors:
            field = field_error.pointer.split("/")[1]
            self.add_error(field if field in self.fields else None, field_error.detail)


@page
def trace(request: PageRequest) -> HttpResponse:
    """The form; once `host` is there, what happens as well. Nothing is sent anywhere, so a trace is a link."""
    form = TraceForm(request.GET if "host" in request.GET else None)
    context: dict[str, Any] = {"form": form}
    if form.is_bound and form.is_valid():
        try:
            question, _ = read_question(form.question())
        except Invalid as error:
            form.attach_errors(error)
        else:
            context["asked"] = question
            context["answers"] = trace_request(request.actor, question)
            context["waits"] = waits_for_verification(request.actor, question)
    return show(request, "pages/routes/trace.html", context, status=422 if form.errors else 200)
