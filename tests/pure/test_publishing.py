"""Which keys of an etcd are written, in how many transactions, and what is in the way; where an operator says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from apps.definitions.server_sources.etcd.client import Kept
from apps.definitions.server_sources.registries import Unreadable
from apps.exporting.publishing import planning
from apps.exporting.publishing.planning import (
    FENCE,
    GONE,
    MOST_BYTES,
    MOST_WRITES,
    OBJECTS,
    REVISION,
    Comparison,
    Conflict,
    compare,
    digest,
    transactions,
)
from apps.exporting.publishing.sinks import sinks

KEY, OTHER = f"{OBJECTS}Route/shop", f"{OBJECTS}Route/other"
SAID = {REVISION: Kept("one", 5)}
KNOWN = {REVISION: [digest("one")]}


def had(value: str | None, revision: int = 5) -> dict[str, Kept]:
    return SAID | ({} if value is None else {KEY: Kept(value, revision)})


@pytest.mark.parametrize(
    ("wanted", "there", "known", "put", "deleted"),
    [
        ("new", None, None, True, False),
        ("new", "new", ["new"], False, False),
        ("new", "old", ["old"], True, False),
        ("new", "old", ["old", "new"], True, False),  # the write before did not come to pass
        ("newer", "new", ["old", "new"], True, False),  # it did
        ("new", "new", None, False, False),  # somebody wrote just that
        (None, "old", ["old"], False, True),
        (None, None, ["old"], False, False),  # somebody deleted what goes anyway
        ("new", None, ["old", None], True, False),  # we were about to delete it
    ],
)
def test_what_is_ours_is_put_and_deleted(
    wanted: str | None, there: str | None, known: list[str | None] | None, put: bool, deleted: bool
) -> None:
    digests = KNOWN | ({KEY: [digest(each) for each in known]} if known else {})
    found = compare({KEY: wanted} if wanted else {}, had(there), digests, {})
    assert (KEY in found.puts, KEY in found.deletes, found.conflicts) == (put, deleted, [])


@pytest.mark.parametrize(
    ("wanted", "there", "known", "what"),
    [
        ("new", "theirs", "old", "changed"),
        ("old", "theirs", "old", "changed"),
        (None, "theirs", "old", "changed"),
        ("old", None, "old", "deleted"),
        ("new", None, "old", "deleted"),
        ("new", "theirs", None, "foreign"),
        (None, "theirs", None, "foreign"),
    ],
)
def test_what_somebody_else_changed_is_in_the_way_unless_it_is_given_up_as_it_is(
    wanted: str | None, there: str | None, known: str | None, what: str
) -> None:
    digests = KNOWN | ({KEY: [digest(known)]} if known else {})
    wants = {KEY: wanted} if wanted else {}
    revision = 7 if there else 0
    assert compare(wants, had(there, 7), digests, {}).conflicts == [Conflict(KEY, revision, what)]
    assert compare(wants, had(there, 7), digests, {KEY: 6}).conflicts == [Conflict(KEY, revision, what)]
    given_up = compare(wants, had(there, 7), digests, {KEY: revision})
    assert (given_up.conflicts, KEY in given_up.puts, KEY in given_up.deletes) == ([], bool(wanted), not wanted)


@pytest.mark.parametrize(
    ("found", "known", "due"),
    [
        (SAID, KNOWN, False),
        ({}, {}, True),  # nothing was ever published, not even that there is nothing
        (SAID, {REVISION: [digest("zero"), digest("one")]}, True),
        (SAID, KNOWN | {KEY: [GONE, digest("x")]}, True),  # what is on its way must come to nothing
        (SAID | {FENCE: Kept("f", 6)}, KNOWN | {FENCE: [GONE, digest("f")]}, True),
    ],
)
def test_the_revision_is_written_wherever_something_is_not_settled(
    found: dict[str, Kept], known: dict[str, list[str]], due: bool
) -> None:
    differs = compare({}, found, known, {})
    assert (differs.due, differs.conflicts) == (due, [])


def test_keys_beside_the_objects_are_nobodys_business() -> None:
    assert compare({}, SAID | {"readme": Kept("theirs", 9)}, KNOWN, {}) == Comparison()


@given(
    puts=st.lists(st.sampled_from([1, 10, MOST_BYTES // 3, MOST_BYTES]), max_size=40),
    more=st.integers(0, 3 * MOST_WRITES),
    deletes=st.integers(0, 2 * MOST_WRITES),
)
def test_every_transaction_is_as_much_as_etcd_takes_and_the_revision_is_last(
    puts: list[int], more: int, deletes: int
) -> None:
    differs = Comparison(
        puts={f"{OBJECTS}{number}": "x" * size for number, size in enumerate([*puts, *[1] * more])},
        deletes=[f"{OBJECTS}gone-{number}" for number in range(deletes)],
    )
    steps = transactions(differs, SAID, "two", "fence")
    for each in steps:
        assert max(len(each.puts) + len(each.deletes), len(each.as_read)) <= 128
        assert sum(len(value) for value in each.puts.values()) <= MOST_BYTES + 100
        assert each.as_read.keys() >= {*each.puts, *each.deletes, REVISION, FENCE}
        assert len(set(each.puts) & set(each.deletes)) == 0
    assert [REVISION in each.puts for each in steps] == [False] * (len(steps) - 1) + [True]
    assert [FENCE in each.puts for each in steps] == [len(steps) > 1] + [False] * (len(steps) - 1)
    assert (FENCE in steps[-1].deletes) == (len(steps) > 1)
    written = {key: value for each in steps for key, value in each.puts.items() if key not in (REVISION, FENCE)}
    assert written == differs.puts
    assert [key for each in steps for key in each.deletes if key != FENCE] == differs.deletes


def test_a_set_that_was_cut_off_is_ended_by_the_next_one() -> None:
    found = SAID | {FENCE: Kept("f", 6), KEY: Kept("old", 4)}
    (step,) = transactions(Comparison(puts={KEY: "new"}), found, "two", "fence")
    assert (step.as_read, step.deletes) == ({KEY: 4, REVISION: 5, FENCE: 6}, [FENCE])
    assert planning.MOST_WRITES + 2 == 128


@pytest.fixture
def file(settings: Settings, tmp_path: Path) -> Path:
    settings.REGISTRIES = str(tmp_path / "registries.json")
    return tmp_path / "registries.json"


def write(file: Path, publish: Any, name: str = "prod") -> None:
    file.write_text(json.dumps({"etcd": {name: {"urls": ["http://10.0.0.5:2379"], "publish": publish}}}))


def test_the_operators_file_names_the_sinks(file: Path) -> None:
    write(file, {"/spillway/globex/": "globex", "/spillway/acme/": "acme"})
    assert [(str(each), each.account, each.wrong) for each in sinks()] == [
        ("prod /spillway/acme/", "acme", ""),
        ("prod /spillway/globex/", "globex", ""),
    ]
    assert sinks()[0].etcd.urls == ("http://10.0.0.5:2379",)


@pytest.mark.parametrize(
    ("publish", "wrong"),
    [
        ({"/": "acme"}, "Write the prefix"),
        ({"spillway/": "acme"}, "Write the prefix"),
        ({"/spillway": "acme"}, "Write the prefix"),
        ({"/a b/": "acme"}, "Write the prefix"),
        ({f"/{'a' * 400}/": "acme"}, "Write the prefix"),
        ({"/spillway/": ["acme"]}, "Name the account"),
        ({"/spillway/": "acme", "/spillway/objects/": "globex"}, "The prefix and /"),
    ],
)
def test_nothing_is_published_where_the_file_is_wrong(file: Path, publish: Any, wrong: str) -> None:
    write(file, publish)
    assert all(each.wrong.startswith(wrong) for each in sinks())
    assert sinks()


def test_a_name_that_is_none_is_told(file: Path) -> None:
    write(file, {"/spillway/": "acme"}, name="Prod_1")
    assert "small letters" in sinks()[0].wrong


@pytest.mark.parametrize("publish", [None, [], {}, "acme"])
def test_no_sink_is_named_by_anything_else(file: Path, publish: Any) -> None:
    write(file, publish)
    assert sinks() == []


def test_a_file_that_cannot_be_read_is_told(file: Path, settings: Settings) -> None:
    with pytest.raises(Unreadable):
        sinks()
    file.write_text("{")
    with pytest.raises(Unreadable):
        sinks()
    settings.REGISTRIES = ""
    assert sinks() == []
