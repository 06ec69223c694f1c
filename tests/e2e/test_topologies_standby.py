"""A primary of PostgreSQL and a standby: the primary is killed, the standby takes its place, and no write is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.installation import wait_until
from tests.e2e.machines import Machines, address, five_machines
from tests.e2e.verdicts import trial
from tests.e2e.watching import PATIENCE_S, WRITTEN, Watched, fill, watched
from tests.servers import as_user, postgresql_bin

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.timeout(1800)]
PRIMARY, STANDBY = "c", "b"
ROUTES = 50
# How long nobody notices that the primary is dead: what a watchdog or a person needs, and no part of Spillway.
UNNOTICED_S = 3.0
WITHOUT_WRITES_S = 5.0
BOTH = f"postgresql://spillway@{address(PRIMARY)}:5432,{address(STANDBY)}:5432/spillway"


def add_standby(machines: Machines) -> None:
    """A copy of the primary on b that follows it."""
    prefix, user = as_user()
    data = machines.cluster(STANDBY)
    data.parent.mkdir()
    shutil.chown(data.parent, user)
    with (machines.cluster(PRIMARY) / "pg_hba.conf").open("a") as rules:
        rules.write("host replication all 10.78.0.0/24 trust\n")
    machines.sql("SELECT pg_reload_conf()")
    copy = [str(postgresql_bin() / "pg_basebackup"), "-h", address(PRIMARY), "-U", "spillway", "-D", str(data)]
    line = ["ip", "netns", "exec", machines.space(STANDBY), *prefix, *copy, "-R", "-c", "fast", "-C", "-S", "standby"]
    subprocess.run(line, check=True, cwd=data.parent, stdout=subprocess.DEVNULL)
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"listen_addresses = '{address(STANDBY)}'\n")
    follow(machines, PRIMARY, start=True)


def follow(machines: Machines, whom: str, *, start: bool = False) -> None:
    """The standby asks this machine for what was written; nobody has it where this is the standby itself."""
    with (machines.cluster(STANDBY) / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"primary_conninfo = 'host={address(whom)} user=spillway application_name=standby'\n")
    if start:
        machines.postgresql("start", at=STANDBY)
    else:
        machines.sql("SELECT pg_reload_conf()", at=STANDBY)
    wait_until(lambda: followed(machines) == (whom == PRIMARY), "the standby does as it was told")


def followed(machines: Machines) -> bool:
    """Whether the primary has a standby."""
    return machines.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", at=PRIMARY) == [(1,)]


def wait_for_the_standby(machines: Machines, names: str) -> None:
    """Whether a commit waits until the standby has it: its name, or nobody's."""
    machines.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'", at=PRIMARY)
    machines.sql("SELECT pg_reload_conf()", at=PRIMARY)


def kill_primary(machines: Machines) -> None:
    """Its first process, and then all others before one of them could say anything, as by power loss."""
    first = int((machines.cluster(PRIMARY) / "postmaster.pid").read_text().splitlines()[0])
    others = [int(pid) for pid in Path(f"/proc/{first}/task/{first}/children").read_text().split()]
    for pid in (first, *others):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def on_standby(machines: Machines, text: str) -> bool:
    """Whether the standby knows this text of the route home."""
    return machines.sql("SELECT fixed_response->>'body' FROM definitions_route WHERE name = 'home'", at=STANDBY) == [
        (text,)
    ]


def what_an_asynchronous_standby_would_lose(machines: Machines) -> None:
    """The control: what was answered as stored is on the primary alone."""
    follow(machines, STANDBY)
    assert machines.write("a", "on the primary alone").status in WRITTEN
    assert not on_standby(machines, "on the primary alone")
    follow(machines, PRIMARY)
    wait_until(lambda: on_standby(machines, "on the primary alone"), "the standby has caught up")


def nothing_is_answered_as_stored_without_the_standby(machines: Machines) -> float:
    """The standby is away; the seconds until writes go on after it is no longer waited for."""
    wait_for_the_standby(machines, "standby")
    assert machines.write("a", "on both").status in WRITTEN
    assert on_standby(machines, "on both")
    follow(machines, STANDBY)
    assert machines.write("a", "on one", timeout=PATIENCE_S).status not in WRITTEN
    began = time.monotonic()
    wait_for_the_standby(machines, "")
    wait_until(lambda: machines.write("a", "on one again").status in WRITTEN, "writes go on")
    took = time.monotonic() - began
    follow(machines, PRIMARY)
    wait_for_the_standby(machines, "standby")
    return took


def switch(machines: Machines, seen: Watched) -> float:
    """Kill the primary, promote the standby; the seconds from then to the next write."""
    with seen.during("without a primary"):
        kill_primary(machines)
        time.sleep(UNNOTICED_S)
        promoted = time.monotonic()
        machines.postgresql("promote", at=STANDBY)
        machines.database_at = STANDBY
        again = seen.writes_again(promoted)
    with seen.during("after"):
        time.sleep(10)
    return again


def test_a_killed_primary_costs_no_write_that_was_answered_as_stored() -> None:
    control = "tests/e2e/test_topologies_standby.py::what_an_asynchronous_standby_would_lose"
    with five_machines() as machines:
        fill(machines, ROUTES)
        add_standby(machines)
        machines.restart_consoles(SPILLWAY_DATABASE_URL=BOTH)
        with trial("PostgreSQL: the primary is killed, the synchronous standby promoted", control) as found:
            what_an_asynchronous_standby_would_lose(machines)
            let_go = nothing_is_answered_as_stored_without_the_standby(machines)
            found.saw(
                f"without the standby nothing was answered as stored; let go, writes went on after {let_go:.1f} s"
            )
            with watched(machines) as seen:
                time.sleep(5)
                again = switch(machines, seen)
            found.saw(f"{sum(seen.answers.values())} requests, {len(seen.stored)} writes")
            found.saw(f"refused with {sorted({each[2] for each in seen.failed})}, by both {dict(seen.nowhere)}")
            found.saw(f"longest pause {seen.pause_s:.1f} s, of which the primary was dead {UNNOTICED_S:g} s unnoticed")
            assert seen.requests_failed() == 0
            found.took("writes go on after the promotion", again, WITHOUT_WRITES_S)
            seen.nothing_is_lost()
