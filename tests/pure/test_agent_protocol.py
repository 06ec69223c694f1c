"""Agent and console say which versions of their protocol they speak, and keep the one before."""

from __future__ import annotations

import json

import pytest

from apps.agent import bodies
from apps.agent import protocol as agents
from apps.agent.errors import Malformed, Unavailable
from apps.drivers.proxy import protocol as consoles


def test_both_sides_speak_the_same_versions_and_one_older() -> None:
    assert list(consoles.SPOKEN) == [agents.OLDEST, agents.NEWEST]
    assert consoles.NEWEST == consoles.OLDEST + 1
    assert set(consoles.LACKING) == set(range(1, consoles.NEWEST))


@pytest.mark.parametrize("said", [None, [1, 1], [1, 2], [2, 3], [0, 1]])
def test_an_agent_takes_what_a_console_of_a_common_version_sends(said: list[int] | None) -> None:
    agents.refuse_strangers(said)


@pytest.mark.parametrize(("said", "words"), [([3, 4], "This agent is too old"), ([0, 0], "The console is too old")])
@pytest.mark.parametrize("read", [bodies.read_bundle, bodies.read_runtime])
def test_an_agent_says_who_has_to_be_updated_and_does_not_blame_the_bundle(
    read: object, said: list[int], words: str
) -> None:
    assert callable(read)
    with pytest.raises(Unavailable, match=words):
        read(json.dumps({"protocols": said}).encode())


@pytest.mark.parametrize("said", [[1], ["1", "2"], {"oldest": 1}, [True, 2], 2])
def test_what_are_no_versions_is_malformed(said: object) -> None:
    with pytest.raises(Malformed):
        agents.refuse_strangers(said)


@pytest.mark.parametrize(
    ("theirs", "understood", "lacking"),
    [
        ((0, 0), False, consoles.LACKING[1]),
        ((1, 1), True, consoles.LACKING[1]),
        ((1, 2), True, ""),
        ((2, 3), True, ""),
        ((3, 4), False, ""),
    ],
)
def test_a_console_knows_what_an_agent_lacks(theirs: tuple[int, int], understood: bool, lacking: str) -> None:
    assert (consoles.understood(theirs), consoles.lacking(theirs)) == (understood, lacking)
