"""What is written and what is left alone, decided from three sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.dns.planning import Key, ZonePlan, plan
from apps.drivers.dns.contract import Edit, RecordSet

NAMES = ("a.example.test", "b.example.test", "c.example.test")
TYPES = ("A", "TXT", "CNAME")


def one(name: str, value: str = "1", rdtype: str = "A", ttl: int = 300) -> RecordSet:
    return RecordSet(f"{name}.example.test", rdtype, ttl, (value,))


def test_what_is_served_as_wanted_needs_nothing_and_counts_as_pushed() -> None:
    made = plan([one("a")], [], [one("a")])
    assert made.edits == ()
    assert made.pushed == {("a.example.test", "A"): one("a")}


def test_what_is_missing_is_added_what_changed_is_changed_what_went_is_removed() -> None:
    made = plan([one("a"), one("b", "2")], [one("b"), one("c")], [one("b"), one("c")])
    assert made.edits == (
        Edit("a.example.test", "A", None, one("a")),
        Edit("b.example.test", "A", one("b"), one("b", "2")),
        Edit("c.example.test", "A", one("c"), None),
    )
    assert made.drift == ()


def test_what_somebody_changed_on_the_server_is_shown_and_only_a_repair_writes_it() -> None:
    sides = ([one("a")], [one("a")], [one("a", "99")])
    made = plan(*sides)
    assert made.edits == ()
    assert [(each.wanted, each.served) for each in made.drift] == [(one("a"), one("a", "99"))]
    repaired = plan(*sides, repair=frozenset({("a.example.test", "A")}))
    assert repaired.edits == (Edit("a.example.test", "A", one("a", "99"), one("a")),)


def test_what_somebody_removed_on_the_server_is_drift_too() -> None:
    made = plan([one("a")], [one("a")], [])
    assert made.edits == ()
    assert made.drift[0].served is None


def test_a_change_of_ours_goes_over_what_somebody_did_meanwhile() -> None:
    made = plan([one("a", "2")], [one("a", "1")], [one("a", "99")])
    assert made.edits == (Edit("a.example.test", "A", one("a", "99"), one("a", "2")),)


def test_a_record_that_was_never_ours_stays_until_somebody_takes_it_over() -> None:
    nothing: list[RecordSet] = []
    sides = ([one("a")], nothing, [one("a", "theirs")])
    made = plan(*sides)
    assert made.edits == ()
    assert made.in_the_way[0].served == one("a", "theirs")
    key = frozenset({("a.example.test", "A")})
    assert plan(*sides, repair=key).edits == ()
    assert plan(*sides, repair=key, adopt_existing=True).edits == (
        Edit("a.example.test", "A", one("a", "theirs"), one("a")),
    )


def test_beside_an_alias_of_others_nothing_is_written() -> None:
    alias = one("a", "www", "CNAME")
    made = plan([one("a")], [], [alias])
    assert made.edits == ()
    assert made.in_the_way[0].served == alias
    taken = plan([one("a")], [], [alias], repair=frozenset({("a.example.test", "A")}), adopt_existing=True)
    assert taken.edits == (
        Edit("a.example.test", "CNAME", alias, None),
        Edit("a.example.test", "A", None, one("a")),
    )


def test_our_own_alias_makes_room_for_addresses() -> None:
    alias = one("a", "www", "CNAME")
    made = plan([one("a")], [alias], [alias])
    assert {(edit.type, edit.after) for edit in made.edits} == {("A", one("a")), ("CNAME", None)}


def test_what_is_wanted_no_more_but_changed_by_others_is_theirs_now() -> None:
    made = plan([], [one("a")], [one("a", "theirs")])
    assert made.edits == ()
    assert made.forgotten == (("a.example.test", "A"),)
    assert made.unmanaged == (one("a", "theirs"),)
    assert made.pushed == {}


def test_records_that_have_nothing_to_say_at_the_moment_stay_as_they_are() -> None:
    keep = frozenset({("a.example.test", "A")})
    made = plan([], [one("a")], [one("a")], keep=keep)
    assert made.edits == ()
    assert made.pushed == {("a.example.test", "A"): one("a")}


record_sets = st.builds(
    RecordSet,
    st.sampled_from(NAMES),
    st.sampled_from(TYPES),
    st.sampled_from((60, 300)),
    st.tuples(st.sampled_from("12")),
)


def _sane(records: list[RecordSet]) -> dict[Key, RecordSet]:
    """As a server can hold them: one set for each name and type, nothing beside a CNAME."""
    found: dict[Key, RecordSet] = {}
    for each in records:
        others = {kind for name, kind in found if name == each.name}
        if not others or ("CNAME" in others) == (each.type == "CNAME"):
            found[each.name, each.type] = each
    return found


sides = st.lists(record_sets, max_size=6).map(_sane)


@given(sides, sides, sides)
def test_what_nobody_defined_here_is_never_touched(
    wanted: dict[Key, RecordSet], pushed: dict[Key, RecordSet], served: dict[Key, RecordSet]
) -> None:
    made = plan(wanted.values(), pushed.values(), served.values())
    foreign = {key for key in served if key not in wanted and key not in pushed}
    assert not {(edit.name, edit.type) for edit in made.edits} & foreign
    for edit in made.edits:
        assert edit.before == served.get((edit.name, edit.type))


@given(sides, sides, sides)
def test_a_repair_that_takes_over_serves_all_that_is_wanted_and_then_rests(
    wanted: dict[Key, RecordSet], pushed: dict[Key, RecordSet], served: dict[Key, RecordSet]
) -> None:
    made = plan(wanted.values(), pushed.values(), served.values(), repair=frozenset(wanted), adopt_existing=True)
    after = _after(served, made)
    assert {key: after.get(key) for key in wanted} == wanted
    for name, kind in wanted:
        assert kind != "CNAME" or [other for at, other in after if at == name] == ["CNAME"]
    again = plan(wanted.values(), made.pushed.values(), after.values())
    assert (again.edits, again.drift, again.in_the_way) == ((), (), ())


def _after(served: dict[Key, RecordSet], made: ZonePlan) -> dict[Key, RecordSet]:
    after = dict(served)
    for edit in made.edits:
        after.pop((edit.name, edit.type), None)
    return after | {(edit.name, edit.type): edit.after for edit in made.edits if edit.after is not None}
