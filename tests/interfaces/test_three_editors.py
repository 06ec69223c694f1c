"""Two pipelines and a person change one route at once: whoever is late is told, and nobody's change is lost."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.bootstrap import replace_token
from apps.audit.models import Entry
from apps.definitions.models import Route
from apps.definitions.selectors import describe, routes
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db(transaction=True)
Save = Callable[[int, Callable[[], object]], int]


def nothing() -> None:
    """What is done between reading and saving where nobody is waited for."""


class Editor(threading.Thread):
    """Somebody who saves so many times; `save` says how often it was sent back before it came through.

    Before the first save it waits until all have read, so that they meet.
    """

    def __init__(self, save: Save, rounds: int, all_have_read: threading.Barrier) -> None:
        super().__init__()
        self.save, self.rounds, self.all_have_read = save, rounds, all_have_read
        self.sent_back, self.error = 0, ""

    def run(self) -> None:
        """Save and count."""
        try:
            for number in range(self.rounds):
                self.sent_back += self.save(number, nothing if number else lambda: self.all_have_read.wait(60))
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.error = repr(error)
        finally:
            connection.close()


def pipeline(token: str, change: Callable[[dict[str, Any], int], None], *, careful: bool = True) -> Save:
    """Read, change one thing, save with the version that was read; 412 means read again."""
    client, headers = Client(), {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    url = "/api/v1/routes/acme/shop"

    def save(number: int, meanwhile: Callable[[], object]) -> int:
        for tries in range(200):
            read = client.get(url, **headers)  # type: ignore[arg-type] # headers are headers
            spec = read.json()["spec"]
            if not tries:
                meanwhile()
            change(spec, number)
            match = {"HTTP_IF_MATCH": read["ETag"] if careful else "*"}
            answer = client.put(url, {"spec": spec}, "application/json", **headers, **match)  # type: ignore[arg-type]
            if answer.status_code == 200:
                return tries
            assert answer.status_code in (409, 412), answer.content
        raise AssertionError("never came through")

    return save


def person(actor: Actor, route: Route) -> Save:
    """Open the form, change the path, send it; in a conflict send the form that holds both changes."""
    client, url = client_of(actor), f"/routes/{route.pk}/edit"

    def save(number: int, meanwhile: Callable[[], object]) -> int:
        page = client.get(url).content.decode()
        meanwhile()
        for tries in range(200):
            answer = client.post(url, filled(page, path=f"/person-{number}"))
            if answer.status_code == 302:
                return tries
            assert answer.status_code == 409, answer.content.decode()[:2000]
            page = answer.content.decode()
        raise AssertionError("never came through")

    return save


def filled(page: str, **typed: str) -> dict[str, Any]:
    """What a browser sends for the route's form as it stands in the page, with what was typed over it."""
    form = page[page.index('id="route-form"') :].partition("</form>")[0]
    form = re.sub(r"<template>.*?</template>", "", form, flags=re.DOTALL)
    found: dict[str, Any] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        have = dict(re.findall(r'([a-z]+)="([^"]*)"', tag))
        if have.get("type") in ("checkbox", "radio") and " checked" not in tag:
            continue
        found.setdefault(have["name"], []).append(have.get("value", ""))
    for name, options in re.findall(r'<select name="([^"]+)".*?>(.*?)</select>', form, flags=re.DOTALL):
        found[name] = re.findall(r'value="([^"]*)" selected', options)[:1] or [""]
    for name, text in re.findall(r'<textarea name="([^"]+)".*?>\s*(.*?)</textarea>', form, flags=re.DOTALL):
        found[name] = [text]
    return found | {name: [value] for name, value in typed.items()}


def run(rounds: int, *saves: Save) -> int:
    """Everybody at once; how often somebody was sent back."""
    all_have_read = threading.Barrier(len(saves))
    editors = [Editor(save, rounds, all_have_read) for save in saves]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join(60)
    assert [editor.error for editor in editors] == [""] * len(editors)
    return sum(editor.sent_back for editor in editors)


def set_methods(spec: dict[str, Any], number: int) -> None:
    """What the first pipeline changes."""
    spec["methods"] = [["GET"], ["GET", "HEAD"]][number % 2]


def set_weight(spec: dict[str, Any], number: int) -> None:
    """What the second pipeline changes."""
    spec["action"]["pools"][0]["weight"] = number + 1


@pytest.mark.both_engines  # each keeps writers apart in its own way
@pytest.mark.slow(reason="three who edit meet in each round")
@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.exhaustive)])
def test_two_pipelines_and_a_person_lose_no_change(tutorial_env: Actor, acme: Actor, rounds: int) -> None:
    route = routes(acme).get(name="shop")
    token = replace_token(account=acme.account, name="pipelines")
    sent_back = run(rounds, pipeline(token, set_methods), pipeline(token, set_weight), person(acme, route))
    spec = describe(routes(acme).get(pk=route.pk))
    assert spec["methods"] == ["GET", "HEAD"]
    assert spec["action"]["pools"][0]["weight"] == rounds
    assert spec["path"] == f"/person-{rounds - 1}"
    assert sent_back >= 2  # of three who had read the same, one came first
    assert gaps(route) == []


def gaps(route: Route) -> list[tuple[Any, Any]]:
    """Places in the audit log where a change did not begin with what the one before it had left."""
    entries = list(Entry.objects.filter(object_kind="Route", object_id=route.pk).order_by("version"))
    return [(one.after, two.before) for one, two in itertools.pairwise(entries) if one.after != two.before]


def test_without_the_version_a_pipeline_overwrites_what_the_other_saved(tutorial_env: Actor, acme: Actor) -> None:
    route = routes(acme).get(name="shop")
    client, headers = Client(), {"HTTP_AUTHORIZATION": f"Bearer {replace_token(account=acme.account, name='careless')}"}
    url = "/api/v1/routes/acme/shop"
    stale = client.get(url, **headers).json()["spec"]  # type: ignore[arg-type] # headers are headers
    pipeline(headers["HTTP_AUTHORIZATION"].removeprefix("Bearer "), set_methods)(1, nothing)
    late = {"spec": stale | {"path": "/late"}}
    answer = client.put(url, late, "application/json", HTTP_IF_MATCH="*", **headers)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert describe(routes(acme).get(pk=route.pk))["methods"] == []
