"""The release before, with a filled database, becomes today's under load: agents, database, one console, the other.

Who uses the nodes notices nothing, and who writes waits a few seconds at most.
"""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests import earlier
from tests.e2e.installation import wait_until
from tests.e2e.machines import CONSOLES, NODES, Machines, five_machines
from tests.e2e.verdicts import trial
from tests.e2e.watching import WRITTEN, Watched, fill, watched

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(earlier.missing()), reason=earlier.missing() or "-"),
]

WITHOUT_WRITES_S = 5.0
ROUTES = 300


def renew(machines: Machines, console: str) -> None:
    """Today's release on a console, its programs anew."""
    machines.stop_console(console)
    machines.trees.pop(console)
    machines.start_console(console)
    wait_until(lambda: machines.ready(console), f"console {console} is ready")


def upgrade(machines: Machines, seen: Watched) -> None:
    """As docs/operate/compatibility.md says it: agents, the database, one console, the other."""
    before = machines.trees["a"]
    for node in NODES:
        with seen.during(f"agent {node}"):
            machines.stop(node, "agent")
            machines.trees.pop(node)
            machines.start_agent(node)
            time.sleep(3)
    with seen.during("migrate"):
        machines.trees.pop("a")
        machines.manage("a", "migrate", "--verbosity", "0")
        machines.trees["a"] = before
    with seen.during("old consoles, new schema"):
        time.sleep(5)
    for console in CONSOLES:
        with seen.during(f"console {console}"):
            renew(machines, console)


def test_an_upgrade_loses_no_request_and_keeps_writes_waiting_for_seconds() -> None:
    tried = f"an upgrade from {earlier.release()[:12]} under load"
    with five_machines(dict.fromkeys((*CONSOLES, *NODES), earlier.tree())) as machines:
        fill(machines, ROUTES)
        (routes,) = machines.sql("SELECT count(*) FROM definitions_route")[0]
        assert routes >= ROUTES
        with trial(tried, "none: a console of before that fails is found among the writes") as found:
            with watched(machines) as seen:
                time.sleep(3)
                upgrade(machines, seen)
                with seen.during("after"):
                    time.sleep(5)
            found.saw(f"seconds {seen.seconds}")
            found.saw(f"{sum(seen.answers.values())} requests, {len(seen.stored)} writes")
            found.saw(f"failed at one console {dict(Counter(each[:3] for each in seen.failed))}")
            assert {status for _, _, status in seen.answers} == {200}, seen.answers
            assert [each for each in seen.failed if each[0] in ("migrate", "old consoles, new schema")] == []
            found.took(f"the longest pause between writes, in {seen.paused_in}, ended", seen.pause_s, WITHOUT_WRITES_S)
        assert machines.write("b", "the end").status in WRITTEN
        machines.served("the end")
        seen.nothing_is_lost()
        kept = machines.sql("SELECT count(*) FROM definitions_route WHERE name NOT LIKE 'write-%'")
        assert kept == [(routes,)]
        told = machines.sql("SELECT count(*) FROM observe_nodereport WHERE protocols::text LIKE '%2%'")
        assert told == [(len(NODES),)], "agents of this release are known as such"
