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
from apps.accounts.founding import replace_token
from apps.audit.models import Entry
from apps.definitions.models import Route
from apps.definitions.selectors import describe, routes
from tests.doors.people import client_of

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 8


class Editor(threading.Thread):
    """Somebody who saves `ROUNDS` times; `save` says how often it was sent back before it came through."""

    def __init__(self, save: Callable[[int], int]) -> None:
        super().__init__()
        self.save, self.sent_back, self.error = save, 0, ""

    def run(self) -> None:
        """Save and count."""
        try:
            for number in range(ROUNDS):
                self.sent_back += self.save(number)
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.error = repr(error)
        finally:
            connection.close()


def pipeline(
    token: str, change: Callable[[dict[str, Any], int], None], *, careful: bool = True
) -> Callable[[int], int]:
    """Read, change one thing, save with the version that was read; 412 means read again."""
    client, headers = Client(), {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    url = "/api/v1/routes/acme/shop"

    def save(number: int) -> int:
        for tries in range(200):
            read = client.get(url, **headers)  # type: ignore[arg-type] # headers are headers
            spec = read.json()["spec"]
            change(spec, number)
            match = {"HTTP_IF_MATCH": read["ETag"] if careful else "*"}
            answer = client.put(url, {"spec": spec}, "application/json", **headers, **match)  # type: ignore[arg-type]
            if answer.status_code == 200:
                return tries
            assert answer.status_code in (409, 412), answer.content
        raise AssertionError("never came through")

    return save


def person(actor: Actor, route: Route) -> Callable[[int], int]:
    """Open the form, change the path, send it; in a conflict send the form that holds both changes."""
    client, url = client_of(actor), f"/routes/{route.pk}/edit"

    def save(number: int) -> int:
        page = client.get(url).content.decode()
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


def run(editors: list[Editor]) -> int:
    """Everybody at once; how often somebody was sent back."""
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


def test_two_pipelines_and_a_person_lose_no_change(tutorial_world: Actor, acme: Actor) -> None:
    route = routes(acme).get(name="shop")
    token = replace_token(account=acme.account, name="pipelines")
    sent_back = run(
        [Editor(pipeline(token, set_methods)), Editor(pipeline(token, set_weight)), Editor(person(acme, route))]
    )
    spec = describe(routes(acme).get(pk=route.pk))
    assert spec["methods"] == ["GET", "HEAD"]
    assert spec["action"]["pools"][0]["weight"] == ROUNDS
    assert spec["path"] == f"/person-{ROUNDS - 1}"
    assert sent_back > 0  # else they never met and nothing was proved
    assert gaps(route) == []


def gaps(route: Route) -> list[tuple[Any, Any]]:
    """Places in the record where a change did not begin with what the one before it had left."""
    entries = list(Entry.objects.filter(object_kind="Route", object_id=route.pk).order_by("version"))
    return [(one.after, two.before) for one, two in itertools.pairwise(entries) if one.after != two.before]


def test_without_the_version_a_pipeline_overwrites_what_the_other_saved(tutorial_world: Actor, acme: Actor) -> None:
    route = routes(acme).get(name="shop")
    client, headers = Client(), {"HTTP_AUTHORIZATION": f"Bearer {replace_token(account=acme.account, name='careless')}"}
    url = "/api/v1/routes/acme/shop"
    stale = client.get(url, **headers).json()["spec"]  # type: ignore[arg-type] # headers are headers
    pipeline(headers["HTTP_AUTHORIZATION"].removeprefix("Bearer "), set_methods)(1)
    late = {"spec": stale | {"path": "/late"}}
    answer = client.put(url, late, "application/json", HTTP_IF_MATCH="*", **headers)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert describe(routes(acme).get(pk=route.pk))["methods"] == []
