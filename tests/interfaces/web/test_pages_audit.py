"""The audit log on pages and as files: complete, searchable, one's own, and harmless to open."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.audit import chain, selectors
from apps.audit.exporting import cell
from apps.audit.models import Entry
from apps.audit.services import record
from apps.definitions.models import Pool
from apps.definitions.services import delete_object, save_object
from apps.web.kit.differences import of_json as difference
from tests.interfaces.people import client_of


@pytest.fixture
def client(tutorial_env: Actor) -> Client:
    """The operator's browser."""
    return client_of(tutorial_env)


def add(actor: Actor, **more: Any) -> Entry:
    """One entry of the actor's account."""
    known: dict[str, Any] = {"action": "update", "kind": "Pool", "object_id": 1, "label": "acme/shop"}
    return record(actor=actor, **known | more)


def content(answer: Any) -> str:
    """The text of a streamed answer."""
    return b"".join(answer.streaming_content).decode()


def test_an_entry_leads_to_its_object_while_that_is_there(client: Client, acme: Actor) -> None:
    kept, gone = (save_object(actor=acme, kind="Pool", name=name, spec={}) for name in ("kept", "gone"))
    pages = {row.pk: client.get(f"/audit/{told(row).pk}").content.decode() for row in (kept, gone)}
    assert all(f'href="/pools/{pk}"' in page for pk, page in pages.items())
    entry = told(gone)
    delete_object(actor=acme, kind="Pool", name="gone")
    assert f'href="/pools/{entry.object_id}"' not in client.get(f"/audit/{entry.pk}").content.decode()


def told(row: Pool) -> Entry:
    """The entry of the pool that was just made."""
    return Entry.objects.filter(object_kind="Pool", object_id=row.pk).latest("id")


def test_a_change_shows_up_with_who_why_and_what(client: Client, acme: Actor, tutorial_env: Actor) -> None:
    save_object(actor=acme, kind="Pool", name="new", spec={"connect_timeout_ms": 2000}, reason="more patience")
    save_object(actor=acme, kind="Pool", name="new", spec={"connect_timeout_ms": 3000}, reason="even more")
    page = client.get("/audit?q=even").content.decode()
    assert "acme/new" in page
    assert "somebody of acme" in page
    entry = Entry.objects.earliest("-id")
    page = client.get(f"/audit/{entry.pk}").content.decode()
    assert "even more" in page
    assert "to version 2" in page
    for kind, sign, number in (("del", "−", 2000), ("add", "+", 3000)):
        line = f"<span>  &quot;connect_timeout_ms&quot;: {number},</span></li>"
        assert f'<li class="{kind}"><span class="mark">{sign}</span>{line}' in page
    assert f'href="/pools/{entry.object_id}"' in page


# Under what entries were recorded before it was renamed, and how pages read it.
RENAMED = {
    ("Hostname", "prove"): ("Hostname verified", "verify"),
    ("Hostname", "lose_proof"): ("Hostname verification lost", "lose_verification"),
    ("Hostname", "end_rest"): ("Hostname cooldown ended", "end_cooldown"),
    ("Account", "view_as"): ("Account impersonated", "impersonate"),
    ("Account", "stop_viewing"): ("Account impersonation stopped", "stop_impersonating"),
    ("Fire", "give_up"): ("Schedule run given up", "give_up"),
}


def test_an_entry_under_an_older_word_is_shown_under_its_new_one(client: Client, acme: Actor) -> None:
    for (kind, action), (title, new) in RENAMED.items():
        entry = add(acme, kind=kind, action=action, label=f"acme/{action}")
        assert f">{title}</a>" in client.get("/audit").content.decode()
        page = client.get(f"/audit/{entry.pk}").content.decode()
        assert f"<h1>{title}</h1>" in page
        assert f'<span class="mono">{new}</span>' in page
        assert (f'recorded as <span class="mono">{action}</span>' in page) == (new != action)
        assert Entry.objects.get(pk=entry.pk).action == action  # its digest holds


# Whether each leaves one entry: which letters are the same, and what time it is, each engine says in its own way.
FILTERS = {
    "q=HEAT": True,
    "q=cold": False,
    "actor=somebody of acme": True,
    "actor=somebody": False,
    "kind=Server&action=drain": True,
    "kind=Server&action=update": False,
    "object=acme/sh": True,
    "object=shop": False,
    "account=acme": True,
    "account=globex": False,
    "object_id=77": True,
    "since=2020-01-01T00:00": True,
    "since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z": False,
    "until=2999-01-01T00:00": True,
    "request_id=none-of-them": False,
}


@pytest.mark.both_engines
def test_every_filter_narrows(operator: Actor, acme: Actor) -> None:
    entry = add(acme, kind="Server", action="drain", object_id=77, label="acme/shop/vm-1", reason="heat")
    browser = client_of(operator)
    shown = {query: f'id="entry-{entry.pk}"' in browser.get(f"/audit?{query}").content.decode() for query in FILTERS}
    assert shown == FILTERS


@pytest.mark.both_engines  # NUL, which PostgreSQL takes in no text
def test_a_filter_that_cannot_be_used_is_said(operator: Actor) -> None:
    browser = client_of(operator)
    for query in ("since=yesterday", "object_id=x", "q=%00", "object_id=-1", f"q={'x' * 254}"):
        answer = browser.get(f"/audit?{query}")
        assert (answer.status_code, b"This filter is not valid" in answer.content) == (422, True), query
        assert browser.get(f"/audit/export.csv?{query}").status_code == 422, query


def test_pages_go_on_where_the_one_before_ended(client: Client, acme: Actor) -> None:
    for number in range(120):
        add(acme, label=f"acme/many-{number}")
    seen, url = [], "/audit?object=acme/many-"
    for _ in range(3):
        answer = client.get(url)
        seen += [row.object_label for row, _ in answer.context["rows"]]
        url = f"/audit?object=acme/many-&before={answer.context['next_before']}"
    assert seen == [f"acme/many-{number}" for number in range(119, -1, -1)]
    assert answer.context["next_before"] is None


def test_customers_read_their_own_record_and_nothing_of_others(acme: Actor, globex: Actor, tutorial_env: Actor) -> None:
    foreign = add(globex, label="globex/secret-project")
    browser = client_of(acme)
    assert "globex" not in browser.get("/audit").content.decode()
    assert "globex" not in content(browser.get("/audit/export.csv"))
    assert "globex" not in content(browser.get("/audit/export.jsonl?account=globex"))
    missing = [browser.get(f"/audit/{pk}") for pk in (foreign.pk, 10**9, 10**30)]
    assert {answer.status_code for answer in missing} == {404}
    assert "acme" in browser.get("/audit").content.decode()


def test_the_four_states_of_the_list(operator: Actor) -> None:
    browser = client_of(operator)
    assert "No changes yet" in browser.get("/audit").content.decode()
    assert "No matching entries" in browser.get("/audit?q=x").content.decode()
    assert "No older entries" in browser.get("/audit?before=1").content.decode()


@pytest.mark.parametrize(("batch", "entries"), [(10, 25), pytest.param(500, 1100, marks=pytest.mark.exhaustive)])
def test_an_export_holds_every_entry_that_the_filter_leaves_and_can_be_read_back(
    client: Client, acme: Actor, monkeypatch: pytest.MonkeyPatch, batch: int, entries: int
) -> None:
    monkeypatch.setattr(selectors, "_BATCH", batch)
    for number in range(entries):  # more than two batches
        add(acme, label=f"acme/many-{number}", after={"weight": number, "name": "Zürich"})
    chain.link_pending(limit=10_000)
    answer = client.get("/audit/export.csv?object=acme/many-")
    assert answer["Content-Disposition"] == 'attachment; filename="spillway-audit.csv"'
    rows = list(csv.DictReader(io.StringIO(content(answer))))
    assert [row["object"] for row in rows] == [f"acme/many-{number}" for number in reversed(range(entries))]
    assert json.loads(rows[0]["after"]) == {"weight": entries - 1, "name": "Zürich"}
    assert all(row["digest"] and row["position"] for row in rows)
    lines = content(client.get("/audit/export.jsonl?object=acme/many-")).splitlines()
    assert [json.loads(line)["after"]["weight"] for line in lines] == list(reversed(range(entries)))


HOSTILE = ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")']


def test_no_cell_is_a_formula_and_no_byte_steers_a_terminal(operator: Actor, acme: Actor) -> None:
    browser = client_of(operator)
    for number, text in enumerate(HOSTILE):
        label = f"acme/hostile-{number}"
        add(acme, label=label, reason=f"{text}\x1b[31m\u202e\u200b\r\nx", after={"a": text})
        body = content(browser.get(f"/audit/export.csv?object={label}"))
        (row,) = csv.DictReader(io.StringIO(body))
        assert row["reason"].startswith("'"), text
        assert "\\x1b[31m\\u202e\\u200b\\x0d\\x0ax" in row["reason"]
        assert not any(character in body for character in "\x1b\u202e\u200b\t")
        assert len(body.splitlines()) == 2
        line = content(browser.get(f"/audit/export.jsonl?object={label}"))
        assert line.isascii()
        assert line.count("\n") == 1
        assert json.loads(line)["reason"].startswith(text)


@pytest.mark.parametrize(("value", "text"), [(None, ""), (-7, "-7"), ("plain - text", "plain - text"), ([], "[]")])
def test_ordinary_cells_pass_unchanged(value: object, text: str) -> None:
    assert cell(value) == text


def test_a_document_that_is_new_is_all_added_and_equal_ones_show_nothing() -> None:
    assert difference(None, {"a": 1}) == [("add", "{"), ("add", '  "a": 1'), ("add", "}")]
    assert difference({"a": 1}, {"a": 1}) == []


def test_the_private_key_of_a_certificate_is_nowhere_in_the_record(client: Client, tutorial_env: Actor) -> None:
    from tests.pure.compiler_fixtures import certificate_pem

    pem = certificate_pem("shop.acme.example")
    begin = pem.index("-----BEGIN PRIVATE KEY")
    key = pem[begin : pem.index("-----END PRIVATE KEY-----", begin) + 25] + "\n"
    spec = {"chain": pem.replace(key, ""), "key": key}
    save_object(actor=tutorial_env, kind="Certificate", name="shop", spec=spec)
    text = content(client.get("/audit/export.jsonl"))
    assert "Certificate" in text
    assert "PRIVATE KEY" not in text
    assert key.splitlines()[1][:40] not in text
