"""Which servers a backend has after its source answered, and how sources are written."""

from __future__ import annotations

import pytest

from apps.compiler.grammar import GrammarError
from apps.definitions.server_sources.deciding import CONFIRMED, Endpoint, FoundServer, decide
from apps.definitions.shapes.servers.source import Kind, Source, read_source, source


def listed(*numbers: int) -> list[FoundServer]:
    return [FoundServer(f"10.0.0.{number}", 8080) for number in numbers]


def known(*numbers: int) -> dict[Endpoint, str]:
    return {(f"10.0.0.{number}", 8080): f"s{number}" for number in numbers}


def names(*numbers: int, of: tuple[int, ...], short: int = 0) -> list[str] | None:
    found = decide(known(*of), listed(*numbers), short).servers
    return sorted(found) if found is not None else None


def test_servers_come_and_go_and_those_that_stay_keep_their_names() -> None:
    assert names(1, 2, of=()) == ["10-0-0-1-8080", "10-0-0-2-8080"]
    assert names(2, 3, of=(1, 2)) == ["10-0-0-3-8080", "s2"]


def test_an_empty_answer_never_empties_a_backend() -> None:
    decision = decide(known(1, 2), [], short=CONFIRMED)
    assert decision.servers is None
    assert decision.held == "The source lists no server that can be used; the 2 known ones stay."


def test_less_than_half_of_what_is_known_is_believed_only_when_it_was_said_several_times() -> None:
    said = [decide(known(1, 2, 3), listed(1), short) for short in range(CONFIRMED)]
    assert [each.short for each in said[:-1]] == list(range(1, CONFIRMED))
    assert {each.servers for each in said[:-1]} == {None}
    assert list(said[-1].servers or ()) == ["s1"]
    assert said[0].held.startswith("The source lists 1 of 3 known servers")


def test_half_is_enough_and_all_new_ones_are_none_of_the_known() -> None:
    assert names(1, of=(1, 2)) == ["s1"]
    assert names(7, 8, 9, of=(1, 2, 3)) is None
    assert names(7, 8, 9, of=(1, 2, 3), short=CONFIRMED - 1) == ["10-0-0-7-8080", "10-0-0-8-8080", "10-0-0-9-8080"]


def test_no_two_servers_have_one_name_or_one_place() -> None:
    twice = [FoundServer("a.example", 80, hint="web"), FoundServer("b.example", 80, hint="Web"), *listed(1, 1)]
    found = decide({("c.example", 80): "web"}, [*twice, FoundServer("c.example", 80)], 0).servers
    assert found is not None
    assert sorted(found) == ["10-0-0-1-8080", "web", "web-1", "web-2"]


@pytest.mark.parametrize("hint", ["", "ünï", "-", "x" * 300, "1.2"])
def test_every_name_that_is_made_is_a_name(hint: str) -> None:
    (name,) = decide({}, [FoundServer("fd00::1", 8080, hint=hint)], 0).servers or {}
    assert 0 < len(name) <= 63


def test_sources_are_written_as_urls() -> None:
    assert read_source("dns://app.internal:8080") == Source(Kind.DNS, "app.internal", 8080)
    assert read_source("srv://_http._tcp.app.internal") == Source(Kind.SRV, "_http._tcp.app.internal")
    assert read_source("https://cmdb.example/targets?pool=shop").kind == Kind.HTTP
    assert read_source("heartbeat://30") == Source(Kind.HEARTBEAT, "", lease_s=30)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("app.internal", "Write dns://name:port, srv://"),
        ("dns://app.internal", "Add the port of the servers"),
        ("dns://app.internal:0", "Add the port of the servers"),
        ("dns://app.internal:65536", "Add the port of the servers"),
        ("dns://10.0.0.1\n:80", "Write the DNS name"),
        ("srv://APP.internal", "Write the DNS name"),
        ("srv://a..b", "Write the DNS name"),
        ("http://cmdb.example/", "Write dns://name:port"),
        ("https://user:word@cmdb.example/", "Leave user names"),
        ("heartbeat://", "Say for how many seconds"),
        ("heartbeat://9", "Say for how many seconds"),
        ("heartbeat://3601", "Say for how many seconds"),
        ("file:///etc/passwd", "Write file:// and the name that the operator gave"),
        ("https://" + "x" * 400 + ".example", "Write dns://name:port"),
    ],
)
def test_what_is_no_source_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        source(text)
