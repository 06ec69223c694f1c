"""Renders the style guide without views or a database, for the tests that look at it in a browser."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from types import SimpleNamespace
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path

from apps.web.urls import urlpatterns as pages

_counter = itertools.count(9400)
# Every page that can be named without an object; "routes" is the one that is looked at.
NAMES = sorted({each.name or "" for each in pages if not each.pattern.converters} - {"sign-in"})


class MatchForm(forms.Form):
    """A form with a field of each kind, one of them refused."""

    hostname = forms.CharField(help_text="One name, or *.name for all names below it.")
    path = forms.CharField(initial="/", help_text="Everything below this path.", required=False)
    port = forms.IntegerField(max_value=65535)
    kind = forms.ChoiceField(choices=[("prefix", "Prefix"), ("exact", "Exact")])
    note = forms.CharField(widget=forms.Textarea, required=False)
    https_only = forms.BooleanField(label="Redirect http to https", required=False, help_text="With status 308.")


ROWS: list[dict[str, object]] = [
    {"name": "api.acme.example/v2/", "health": "healthy", "sync": "in_sync", "customer": "Acme", "rps": "4,812",
     "use": 92, "kind": "warn", "p95": "38 ms"},
    {"name": "shop.acme.example/", "health": "healthy", "sync": "behind", "customer": "Acme", "rps": "2,204",
     "use": 61, "kind": "", "p95": "24 ms"},
    {"name": "cdn.globex.example/assets/", "health": "degraded", "sync": "drifted", "customer": "Globex",
     "rps": "1,310", "use": 78, "kind": "", "p95": "112 ms"},
    {"name": "ws.initech.example/", "health": "down", "sync": "in_sync", "customer": "Initech", "rps": "0",
     "use": 0, "kind": "", "p95": "–"},
]  # fmt: skip
STATES = [
    "healthy",
    "degraded",
    "down",
    "unknown",
    "in_sync",
    "behind",
    "drifted",
    "unreachable",
    "held",
    "ready",
    "drain",
    "maintenance",
    "done",
    "failed",
    "refused",
    "rolled_back",
    "rolling_back",
    "pushing",
    "soaking",
    "awaiting_approval",
    "waiting",
    "draft",
    "superseded",
]


def context() -> dict[str, Any]:
    """Everything that the style guide shows, made up here."""
    account = SimpleNamespace(title="Example operator", is_operator=True)
    return {
        "actor": SimpleNamespace(name="ada", role="admin", account=account, is_operator=True),
        "requests": f"{next(_counter):,}",
        "rows": ROWS,
        "states": STATES,
        "steps": [("done", "Compiled"), ("done", "Checked"), ("now", "Canary"), ("", "Wave 1"), ("", "Done")],
        "now": dt.datetime.now(dt.UTC) - dt.timedelta(minutes=3),
        "chart": {
            "x": [1_790_000_000 + 10 * step for step in range(180)],
            "series": [
                {
                    "label": "Requests",
                    "unit": "/s",
                    "values": [round(8000 + 1400 * math.sin(s / 20)) for s in range(180)],
                }
            ],
        },
        "form": MatchForm({"hostname": "", "path": "/v2", "port": "99999", "kind": "exact"}),
        "diff": [
            ("hunk", "@@ 1,3 1,3 @@"),
            ("same", "api.acme.example/ route-5"),
            ("del", "api.acme.example/v2/ route-7"),
            ("add", "api.acme.example/v2/ route-9"),
        ],
        "code": "frontend lst-2\n    bind :8080\n    use_backend %[var(txn.backend)]\n",
        "request_id": "a1b2c3d4e5f60718",
    }


def page(request: HttpRequest) -> HttpResponse:
    """The style guide; `request.user` is a person who is signed in."""
    request.user = SimpleNamespace(is_authenticated=True, get_username=lambda: "ada")  # type: ignore[assignment]  # no database here
    part = request.GET.get("partial")
    return render(request, f"pages/styleguide.html#{part}" if part else "pages/styleguide.html", context())


def sign_in(request: HttpRequest) -> HttpResponse:
    """The page for those who are not signed in, with a form that was refused."""
    return render(request, "pages/account/sign_in.html", {"form": MatchForm()})


def missing(request: HttpRequest) -> HttpResponse:
    """An error page."""
    return render(request, "404.html", context())


urls = [path("" if name == "overview" else f"{name}/", page, name=name) for name in NAMES]
urls += [path("sign-in/", sign_in, name="sign-in")]
urlpatterns = [path("missing/", missing), path("", include((urls, "web")))]
