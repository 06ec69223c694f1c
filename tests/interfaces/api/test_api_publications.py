"""Where definitions are published, through the API and the page System: each state in words, and conflicts' end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.core.clock import database_now
from apps.exporting.models import Publication
from apps.system import selectors
from apps.system.parts.part import Part, State
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
AT = "/spillway/acme/"
CHANGED = {"key": "objects/Route/shop", "revision": 17, "what": "changed"}
GONE = {"key": "revision", "revision": 0, "what": "deleted"}


@pytest.fixture
def file(settings: Settings, tmp_path: Path) -> Path:
    """The operator's file, which names one sink."""
    written = tmp_path / "registries.json"
    written.write_text(json.dumps({"etcd": {"prod": {"urls": ["http://127.0.0.1:1"], "publish": {AT: "acme"}}}}))
    settings.REGISTRIES = str(written)
    return written


def looked_at(**fields: object) -> Publication:
    at = database_now()
    known = {"account": "acme", "tried_at": at, "looked_at": at, "published_at": at, "revision": 7, "objects_count": 3}
    return Publication.objects.create(registry="prod", prefix=AT, **(known | fields))


def part() -> Part:
    return next(each for each in selectors.parts() if each.name == "publications")


def test_nothing_is_shown_where_nothing_is_published(operator: Actor, live_redis: str) -> None:
    assert Api(operator)("GET", "publications").json() == {"publications": []}
    assert part().state == State.OK
    assert 'id="publications"' not in client_of(operator).get("/system").content.decode()


@pytest.mark.parametrize(
    ("fields", "state", "message", "of_part"),
    [
        ({}, "published", "Revision 7 with 3 objects is there.", State.OK),
        ({"error": "etcd does not answer."}, "failed", "etcd does not answer.", State.WARNING),
        ({"error": "etcd is away.", "conflicts": [CHANGED]}, "failed", "etcd is away.", State.WARNING),
        ({"account": "globex"}, "unknown", "Nobody has looked at it yet.", State.UNKNOWN),
        ({"tried_at": None}, "unknown", "Nobody has looked at it yet.", State.UNKNOWN),
        (
            {"conflicts": [CHANGED, GONE]},
            "conflict",
            f"In the way: {AT}objects/Route/shop (changed by somebody else), {AT}revision (deleted by somebody else).",
            State.FAILED,
        ),
    ],
)
def test_each_state_is_told_in_words(
    file: Path, operator: Actor, live_redis: str, fields: dict[str, object], state: str, message: str, of_part: State
) -> None:
    row = looked_at(**fields)
    (found,) = Api(operator)("GET", "publications").json()["publications"]
    assert (found["id"], found["registry"], found["prefix"], found["account"]) == (row.pk, "prod", AT, "acme")
    assert (found["state"], found["message"]) == (state, message)
    assert bool(found["remedy"]) == (state != "published")
    assert part().state == of_part
    page = client_of(operator).get("/system").content.decode()
    assert message in page
    assert ("Overwrite keys" in page) == (state == "conflict")


def test_what_nobody_looks_at_any_more_is_unknown(file: Path, operator: Actor) -> None:
    looked_at(tried_at=database_now() - timedelta(minutes=5))
    (found,) = Api(operator)("GET", "publications").json()["publications"]
    assert found["state"] == "unknown"
    assert found["message"].endswith("Revision 7 with 3 objects is there.")


def test_a_file_that_cannot_be_read_or_is_wrong_is_told(file: Path, operator: Actor, live_redis: str) -> None:
    file.write_text(json.dumps({"etcd": {"prod": {"urls": [], "publish": {"spillway": "acme"}}}}))
    (found,) = Api(operator)("GET", "publications").json()["publications"]
    assert (found["id"], found["state"], found["message"][:16]) == (None, "failed", "Write the prefix")
    assert part().state == State.WARNING
    file.write_text("{")
    assert_problem(Api(operator)("GET", "publications"), 409)
    assert (part().state, part().message) == (State.FAILED, "The file of registries cannot be read here.")
    assert client_of(operator).get("/system").status_code == 200


def test_exactly_the_conflict_that_was_seen_is_overwritten(file: Path, operator: Actor) -> None:
    api, row = Api(operator), looked_at(conflicts=[CHANGED])
    (found,) = api("GET", "publications").json()["publications"]
    assert found["conflicts"] == [CHANGED | {"key": AT + CHANGED["key"]}]  # type: ignore[operator]
    url = f"publications/{row.pk}/overwrite"
    errors = assert_problem(api("POST", url, {}), 422)["errors"]
    assert [each["pointer"] for each in errors] == ["/conflict"]
    assert_problem(api("POST", url, {"conflict": "0" * 16}), 409)
    Publication.objects.update(conflicts=[CHANGED | {"revision": 18}])
    assert_problem(api("POST", url, {"conflict": found["conflict"]}), 409)
    assert Publication.objects.get().overwrite == {}
    Publication.objects.update(conflicts=[CHANGED])
    assert api("POST", url, {"conflict": found["conflict"]}).status_code == 202
    row = Publication.objects.get()
    assert (row.overwrite, row.next_at) == ({"objects/Route/shop": 17}, None)
    entry = Entry.objects.get(object_kind="Publication")
    assert (entry.action, entry.object_label, entry.account) == ("overwrite", f"prod {AT}", operator.account)


def test_the_page_overwrites_what_it_showed(file: Path, operator: Actor, acme: Actor, live_redis: str) -> None:
    row = looked_at(conflicts=[CHANGED])
    url = f"/system/publications/{row.pk}/overwrite"
    assert client_of(acme).post(url, {"conflict": "x"}).status_code == 404
    text = client_of(operator).post(url, {"conflict": "x"}, follow=True).content.decode()
    assert "Other keys are in the way by now." in text
    seen = client_of(operator).get("/system").context["publications"][0]["it"].conflict
    text = client_of(operator).post(url, {"conflict": seen}, follow=True).content.decode()
    assert "The keys are overwritten in a moment, unless they changed again." in text
    assert Publication.objects.get().overwrite == {"objects/Route/shop": 17}


def test_customers_do_not_see_where_anything_is_published(file: Path, acme: Actor) -> None:
    row = looked_at(conflicts=[CHANGED])
    assert Api(acme)("GET", "publications").json() == {"publications": []}
    assert_problem(Api(acme)("POST", f"publications/{row.pk}/overwrite", {"conflict": "x"}), 403)
