"""An agent of the release before with today's console, and today's agent with the console of the release before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apps.drivers.proxy.contract import Seen
from apps.drivers.proxy.protocol import SILENT, SPOKEN
from tests import earlier
from tests.conformance.bundles import make_bundle
from tests.conformance.real_agent import running_agent

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(earlier.missing()), reason=earlier.missing() or "-")]

PUSHED_BY_THE_CONSOLE_BEFORE = """
import sys
from apps.drivers.proxy.contract import NodeTarget
from apps.drivers.proxy.registry import open_driver
from tests.conformance.bundles import make_bundle
driver = open_driver(NodeTarget("us-1", sys.argv[1]))
state = driver.push_bundle(make_bundle(int(sys.argv[2]), answer="before"), int(sys.argv[3]))
print(state.generation, state.serving, driver.read_counters().read_at > 0)
"""


def test_an_agent_of_the_release_before_takes_what_todays_console_pushes(tmp_path: Path) -> None:
    packed = tmp_path / "agent.pyz"
    subprocess.run([sys.executable, earlier.tree() / "deploy" / "pack_agent.py", packed], check=True)
    with running_agent(program=[sys.executable, str(packed)]) as agent:
        first = make_bundle(agent.port)
        state = agent.driver.push_bundle(first, 1)
        assert (state.generation, state.serving, agent.get()) == (1, True, (200, "one"))
        assert (state.protocols, state.features) in ((SILENT, ()), (SPOKEN, agent.state().features))
        assert agent.driver.push_bundle(make_bundle(agent.port, answer="two"), 2).generation == 2
        assert agent.get() == (200, "two")
        seen = agent.driver.observe()
        assert seen.counters is not None
        assert seen.counters.base == ""
        assert seen.counters.rows
        again = agent.driver.observe(Seen(seen.state, seen.counters.token)).counters
        assert again is not None
        # An agent of before 0.1 knows of no changes and tells everything each time; later ones tell what changed.
        assert again.base == seen.counters.token
        told, told_again = ({row.object_id for row in each.rows} for each in (seen.counters, again))
        assert told_again == told if seen.counters.token == "" else told_again <= told


@pytest.mark.exhaustive  # the other way round; Django of another tree starts
def test_todays_agent_takes_what_the_console_of_the_release_before_pushes() -> None:
    with running_agent() as agent:
        words = [f"unix://{agent.folder}/a.sock", str(agent.port), "1"]
        command = [sys.executable, "-c", PUSHED_BY_THE_CONSOLE_BEFORE, *words]
        said = subprocess.run(command, cwd=earlier.tree(), check=True, capture_output=True, text=True).stdout
        assert said.split() == ["1", "True", "True"]
        assert agent.get() == (200, "before")
        agent.kill()
        agent.program = [sys.executable, "-m", "apps.agent"]
        agent.start()  # an agent that is updated adopts what runs
        assert agent.driver.push_bundle(make_bundle(agent.port, answer="two"), 2).generation == 2
        assert agent.get() == (200, "two")


def test_the_state_of_todays_agent_tells_the_build_of_its_haproxy() -> None:
    with running_agent() as agent:
        state = agent.driver.push_bundle(make_bundle(agent.port), 1)
        assert state.protocols == SPOKEN
        assert "OPENSSL" in state.features
        assert state.tls_library
