"""Two consoles behind one address: one dies, one is renewed; who is signed in and edits notices nothing of it."""

from __future__ import annotations

import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookiejar import CookieJar

import pytest

from tests.e2e.installation import ROOT, wait_until
from tests.e2e.machines import CONSOLE_PORT, CONSOLES, PROGRAMS, TOOLS, WEB_THREADS, Machines, address, five_machines
from tests.e2e.verdicts import trial
from tests.e2e.watching import Watched, fill, watched

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(1800)]
FRONT = "x"
PASSWORD = "a-long-pass-phrase-9"
WITHOUT_WRITES_S = 5.0
URL = f"http://{address(FRONT)}:{CONSOLE_PORT}"


def start_console(machines: Machines, name: str) -> None:
    """All of its programs, with a front of its own that believes the one before it."""
    run = machines.folder / f"run-{name}"
    run.mkdir(exist_ok=True)
    web = [str(TOOLS / "gunicorn"), "--config", "python:controlplane.web_server", "--bind", f"unix:{run}/web.sock"]
    machines.start(name, "web", [*web, "--workers", "2", "--threads", str(WEB_THREADS)])
    machines.start(name, "events", [str(TOOLS / "uvicorn"), "controlplane.events:app", "--uds", f"{run}/events.sock"])
    told = {"SPILLWAY_RUN": str(run), "SPILLWAY_BIND": f"{address(name)}:{CONSOLE_PORT}"}
    told["SPILLWAY_TRUSTED_PROXIES"] = address(FRONT)
    machines.start(name, "front", ["haproxy", "-db", "-f", str(ROOT / "deploy/console/haproxy.cfg")], **told)
    machines.start_console(name, *(each for each in PROGRAMS if each != "web"))


def stop_console(machines: Machines, name: str) -> None:
    """All of them, as `systemctl stop` does."""
    machines.stop_console(name, "front", "events", *PROGRAMS)


@contextmanager
def behind_one_address(machines: Machines) -> Iterator[None]:
    """Both consoles with all of their programs, and the front before them."""
    for name in CONSOLES:
        machines.stop_console(name)
        start_console(machines, name)
    listed = {f"SPILLWAY_CONSOLE_{name.upper()}": f"{address(name)}:{CONSOLE_PORT}" for name in CONSOLES}
    told = {"SPILLWAY_BIND": f"{address(FRONT)}:{CONSOLE_PORT}", **listed}
    machines.start(FRONT, "front", ["haproxy", "-db", "-f", str(ROOT / "deploy/console/several.cfg")], **told)
    for name in (*CONSOLES, FRONT):
        wait_until(lambda: machines.ready(name), f"{name} is ready")  # noqa: B023 - called at once
    yield


class Form(HTMLParser):
    """What a browser would send of the form that goes to a path, as the page has it."""

    def __init__(self, text: str, action: str) -> None:
        super().__init__()
        self._action, self._inside, self._select, self._area = action, False, "", ""
        self.values: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Fields as they come."""
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = said.get("method") == "post" and said.get("action", self._action) in ("", self._action)
        name = said.get("name", "")
        if not self._inside:
            return
        if tag == "input" and name and (said.get("type") not in ("checkbox", "radio") or "checked" in said):
            self.values.setdefault(name, said.get("value", ""))
        self._select = name if tag == "select" else self._select
        self._area = name if tag == "textarea" else ""
        if tag == "option" and self._select and ("selected" in said or self._select not in self.values):
            self.values[self._select] = said.get("value", "")

    def handle_data(self, data: str) -> None:
        """The text of an area."""
        if self._inside and self._area:
            self.values[self._area] = self.values.get(self._area, "") + data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        """A form or a field ends."""
        self._inside &= tag != "form"
        self._area = "" if tag == "textarea" else self._area


class Person:
    """A browser without a screen: cookies, pages and forms, always at the one address."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def page(self, path: str, values: dict[str, str] | None = None) -> tuple[str, str]:
        """Where it leads to, and what stands there."""
        data = urllib.parse.urlencode(values).encode() if values is not None else None
        asked = urllib.request.Request(URL + path, data, {"referer": URL + path})  # noqa: S310 - http, to ourselves

        def ask() -> tuple[str, str]:
            with self._opener.open(asked, timeout=60) as answer:
                return str(answer.url).removeprefix(URL), str(answer.read().decode())

        return self._machines.outside(ask)

    def fill(self, path: str, **changed: str) -> tuple[str, dict[str, str]]:
        """A page with its form, filled in."""
        at, text = self.page(path)
        assert at.partition("?")[0] == path, f"sent to {at}"
        return text, Form(text, path).values | changed

    def sign_in(self) -> None:
        """As the first operator."""
        _, values = self.fill("/sign-in", username="admin", password=PASSWORD)
        at, text = self.page("/sign-in", values)
        assert at == "/", f"{at} {text[:2000]}"


def edit(machines: Machines, person: Person, text: str, seen: Watched, what: str) -> float:
    """Somebody has opened a route; console a dies, or is stopped to be renewed; they save. Seconds without a write."""
    (pk,) = machines.sql("SELECT id FROM definitions_route WHERE name = 'home'")[0]
    path = f"/routes/{pk}/edit"
    _, values = person.fill(path)
    assert "fixed_body" in values, sorted(values)
    seen.pause_s = 0.0
    with seen.during(what):
        if what == "dies":
            machines.lose("a")
        else:
            stop_console(machines, "a")
        at, _ = person.page(path, values | {"fixed_body": text})
        assert at.partition("?")[0] != path, "the form was not taken"
        machines.served(text)
        start_console(machines, "a")
        wait_until(lambda: machines.ready("a"), "console a is ready")
        time.sleep(3)
    return seen.pause_s


def test_a_console_of_two_dies_and_is_renewed_and_who_edits_loses_nothing() -> None:
    control = "tests/e2e/test_topologies_consoles.py::one_address_is_not_one_console"
    with five_machines() as machines, behind_one_address(machines):
        fill(machines, 50)
        person = Person(machines)
        person.sign_in()
        with trial("two consoles behind one address: one dies, one is renewed", control) as found:
            with watched(machines, doors=(FRONT,)) as seen:
                died = edit(machines, person, "after a death", seen, "dies")
                renewed = edit(machines, person, "after a renewal", seen, "renewed")
            found.saw(f"{sum(seen.answers.values())} requests, {len(seen.stored)} writes")
            found.saw(f"refused {dict(seen.nowhere)}")
            assert seen.requests_failed() == 0
            found.took("one died: writes", died, WITHOUT_WRITES_S)
            found.took("one renewed: writes", renewed, WITHOUT_WRITES_S)
            seen.nothing_is_lost()
        one_address_is_not_one_console(machines, person)


def one_address_is_not_one_console(machines: Machines, person: Person) -> None:
    """The control: with both gone nobody answers, so what was seen above came from the other one."""
    for name in CONSOLES:
        machines.lose(name)
    with pytest.raises(urllib.error.HTTPError) as caught:
        person.page("/")
    assert caught.value.code == 503
