"""The page of what stays compatible says what the code does."""

from __future__ import annotations

import tomllib

from apps.agent import protocol as agents
from apps.compiler.model.capabilities import CAPABILITIES, Reach
from apps.compiler.model.haproxy_version import OLDEST
from tests.architecture.sources import ROOT
from tests.haproxy_releases import locked

PAGE = (ROOT / "docs" / "operate" / "compatibility.md").read_text()
IN_WORDS = {Reach.NODE: "each node that can", Reach.FLEET: "none until all can"}


def test_it_has_every_feature_that_depends_on_the_haproxy_of_a_node() -> None:
    rows = {f"| {each.label} | {each.needs} | {IN_WORDS[each.reach]} | {each.without} |" for each in CAPABILITIES}
    assert {row for row in rows if row not in PAGE} == set()


def test_it_names_the_pythons_that_make_takes_and_no_other() -> None:
    script = (ROOT / "deploy" / "choose_python.sh").read_text()
    fitting = script.partition('FITTING="')[2].partition('"')[0].split()
    names = list(reversed(fitting))
    assert f"A console needs Python {', '.join(names[:-1])} or {names[-1]}." in PAGE
    assert f"| command | {' | '.join(names)} |" in PAGE
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={names[0]}"


def test_it_names_the_haproxys_that_are_tested() -> None:
    versions = [version.rpartition(".")[0] for version in locked()]
    assert f"asks HAProxy {', '.join(versions[:-1])} and {versions[-1]} whether" in PAGE
    assert f"HAProxy {'.'.join(map(str, OLDEST))} or later. An agent" in PAGE.replace("\n", " ")


def test_it_has_every_version_of_the_protocol() -> None:
    assert all(f"\n| {version} | " in PAGE for version in range(agents.OLDEST, agents.NEWEST + 1))
