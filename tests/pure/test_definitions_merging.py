"""Edit conflicts: nothing of either side is lost, and only what both changed is a conflict."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apps.definitions.previewing.merging import Difference, Who, differences, merge

leaf = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"])
document = st.recursive(
    leaf,
    lambda inner: (
        st.dictionaries(st.sampled_from("pqr"), inner, max_size=3)
        | st.lists(inner, max_size=2)
        | st.lists(
            st.fixed_dictionaries({"name": st.sampled_from("xyz"), "weight": leaf}),
            max_size=3,
            unique_by=lambda entry: str(entry["name"]),
        )
    ),
    max_leaves=12,
)
BASE = {"path": "/", "servers": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}


def found(base: Any, yours: Any, theirs: Any) -> list[Difference]:
    """The differences as a list."""
    return list(differences(base, yours, theirs))


@given(document, document)
def test_a_side_that_changed_nothing_gives_way_to_the_other(base: Any, changed: Any) -> None:
    assert merge(base, changed, base) == changed
    assert merge(base, base, changed) == changed


@given(document, document)
def test_the_same_change_on_both_sides_is_no_difference(base: Any, changed: Any) -> None:
    assert merge(base, changed, changed) == changed
    assert not found(base, changed, changed)


@given(document, document, document)
def test_a_merge_without_conflicts_does_not_depend_on_who_is_you(base: Any, one: Any, other: Any) -> None:
    if all(each.who is not Who.BOTH for each in found(base, one, other)):
        assert _unordered(merge(base, one, other)) == _unordered(merge(base, other, one))


def _unordered(value: Any) -> Any:
    """The value with its keys, and lists of named entries, in the order of their names."""
    if isinstance(value, dict):
        return {key: _unordered(entry) for key, entry in sorted(value.items())}
    if isinstance(value, list):
        entries = [_unordered(entry) for entry in value]
        return sorted(entries, key=repr) if all(isinstance(entry, dict) for entry in entries) else entries
    return value


def test_changes_of_different_servers_are_both_kept() -> None:
    yours = BASE | {"servers": [{"name": "a", "weight": 5}, {"name": "b", "weight": 1}]}
    theirs = BASE | {"servers": [{"name": "a", "weight": 1}, {"name": "b", "weight": 9}, {"name": "c", "weight": 1}]}
    merged = merge(BASE, yours, theirs)
    assert merged["servers"] == [
        {"name": "a", "weight": 5},
        {"name": "b", "weight": 9},
        {"name": "c", "weight": 1},
    ]
    assert [(each.path, each.who) for each in found(BASE, yours, theirs)] == [
        (("servers", "a", "weight"), Who.YOURS),
        (("servers", "b", "weight"), Who.THEIRS),
        (("servers", "c"), Who.THEIRS),
    ]


def test_a_server_that_one_side_removed_is_gone_and_one_that_the_other_changed_is_a_conflict() -> None:
    without_b = BASE | {"servers": [{"name": "a", "weight": 1}]}
    assert merge(BASE, without_b, BASE | {"path": "/new"}) == without_b | {"path": "/new"}
    changed_b = BASE | {"servers": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]}
    assert [each.who for each in found(BASE, without_b, changed_b)] == [Who.BOTH]
    assert merge(BASE, without_b, changed_b) == without_b


def test_where_both_changed_one_field_yours_stands_and_it_is_said() -> None:
    one, other = BASE | {"path": "/one"}, BASE | {"path": "/other"}
    assert merge(BASE, one, other)["path"] == "/one"
    assert found(BASE, one, other) == [Difference(("path",), "/", "/one", "/other", Who.BOTH)]
