"""A node, a region, the secret key or the authority of certificates is lost; docs/operate/recovery.md brings it back.

Callers ask nodes and write at consoles all the time. Each test prints a line with the seconds that the page names.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.admin import environment_file
from tests.e2e.installation import wait_until
from tests.e2e.machines import CONSOLES, HOST, NODES, Machines, five_machines
from tests.e2e.watching import WRITTEN, Watched, fill, watched

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(1200),
    pytest.mark.slow(reason="consoles, nodes and a database are started, lost and brought back"),
]
ROUTES = 50


@pytest.fixture
def machines() -> Iterator[Machines]:
    """All five, with routes that are asked for."""
    with five_machines() as found:
        fill(found, ROUTES)
        yield found


def lives(machines: Machines, node: str, number: int) -> bool:
    """Whether a node answers as this write says; without its route the one of / would answer."""
    return machines.ask(f"{node}/write/{number}", timeout=5, host=HOST).text == f"text {number}"


def live_after(machines: Machines, seen: Watched, *nodes: str) -> float:
    """Seconds until the next write that begins now is served by these nodes."""
    began = time.monotonic()
    seen.writes_again(began)
    number = seen.stored[-1]
    wait_until(lambda: all(lives(machines, node, number) for node in nodes), "what is written is served")
    return time.monotonic() - began


def only_this_node_failed(seen: Watched, node: str) -> None:
    """Every request to the other nodes was answered."""
    failed = {at for (_, at, status), count in seen.answers.items() if status != 200 and count}
    assert failed <= {node}, f"requests failed at {failed}"


def test_an_empty_machine_with_the_name_of_a_lost_node_takes_its_place(machines: Machines) -> None:
    with watched(machines) as seen:
        machines.lose("d")
        shutil.rmtree(machines.state_dir("d"))
        without = live_after(machines, seen, "e")
        last, began = seen.stored[-1], time.monotonic()
        machines.start_agent("d")
        wait_until(lambda: lives(machines, "d", last), "the new machine serves")
        back = time.monotonic() - began
        everywhere = live_after(machines, seen, *NODES)
    only_this_node_failed(seen, "d")
    seen.nothing_is_lost()
    print(
        f"node lost: a change on the others after {without:.1f} s; the empty machine serves {back:.1f} s after its "
        f"agent began, a change everywhere after {everywhere:.1f} s"
    )


def test_the_other_region_takes_changes_while_one_is_lost_and_the_lost_one_catches_up() -> None:
    with five_machines(fleets={"d": "us", "e": "eu"}) as machines:
        fill(machines, ROUTES)
        with watched(machines) as seen:
            machines.unplug("d")
            assert machines.api("a", "regions/us/drain", "POST", {"reason": "The region is lost."}).status in WRITTEN
            without = live_after(machines, seen, "e")
            last = seen.stored[-1]
            machines.plug("d")
            began = time.monotonic()
            wait_until(lambda: lives(machines, "d", last), "the region catches up")
            back = time.monotonic() - began
            assert machines.api("a", "regions/us/undrain", "POST", {}).status in WRITTEN
            everywhere = live_after(machines, seen, *NODES)
        only_this_node_failed(seen, "d")
        seen.nothing_is_lost()
        print(
            f"region lost: a change in the other one after {without:.1f} s; {back:.1f} s after its cable is back the "
            f"region has every change, the next one is everywhere after {everywhere:.1f} s"
        )


def test_a_lost_secret_key_comes_back_from_a_backup_and_meanwhile_nothing_is_written(machines: Machines) -> None:
    passphrase, file = machines.folder / "passphrase", machines.folder / "backup"
    passphrase.write_text("correct horse battery staple")
    settings = machines.settings_file("a")
    own = {name: value for name, value in machines.environment("a").items() if name.startswith("SPILLWAY_")}
    settings.parent.mkdir()
    environment_file.write_new(settings, own, "Settings of console a.")
    machines.admin("a", "backup", "--to", str(file), "--passphrase-file", str(passphrase))
    with watched(machines) as seen:
        settings.rename(settings.with_suffix(".aside"))
        restarted(machines, SPILLWAY_SECRET_KEY="second-" + "k" * 50)
        assert not machines.ready("a")
        assert machines.write("a", "sealed by nobody").status == 503
        began = time.monotonic()
        words = ["--settings-only", "--passphrase-file", str(passphrase)]
        machines.admin("a", "restore", str(file), *words, codes=(0, 1))
        read = time.monotonic() - began
        restarted(machines, SPILLWAY_SECRET_KEY=environment_file.read(settings)["SPILLWAY_SECRET_KEY"])
        again = seen.writes_again(began)
        everywhere = live_after(machines, seen, *NODES)
    assert seen.requests_failed() == 0
    seen.nothing_is_lost()
    print(
        f"secret key lost: settings read in {read:.1f} s, writes again {again:.1f} s after the restore began, the next "
        f"change everywhere after {everywhere:.1f} s; {sum(seen.answers.values())} requests, none failed"
    )


def restarted(machines: Machines, **told: str) -> None:
    """Both consoles begin anew with other settings, whether they are ready then or not."""
    machines.told.update(told)
    for name in CONSOLES:
        machines.stop_console(name)
        machines.start_console(name)
    for name in CONSOLES:
        wait_until(lambda: machines.ask(f"{name}/healthz").status == 200, f"console {name} answers")  # noqa: B023


def test_a_new_authority_takes_the_place_of_a_lost_one_and_no_request_fails(machines: Machines) -> None:
    new = machines.folder / "new"
    with watched(machines) as seen:
        began = time.monotonic()
        machines.manage("a", "issue_certificates", "--out", str(new), "--name", *NODES)
        for node in NODES:
            _hand_over(machines, new, node)
        cut = machines.api("a", "apply", "PUT", {"objects": []}).status
        _use(machines, new)
        took = time.monotonic() - began
        everywhere = live_after(machines, seen, *NODES)
    assert cut in WRITTEN
    assert seen.requests_failed() == 0
    seen.nothing_is_lost()
    print(
        f"authority lost: all certificates replaced after {took:.1f} s, a change everywhere {everywhere:.1f} s later; "
        f"{sum(seen.answers.values())} requests, none failed"
    )


def _hand_over(machines: Machines, new: Path, node: str) -> None:
    """A node's agent gets the new files and begins anew; its HAProxy goes on."""
    for theirs, ours in {"ca.pem": "ca.pem", f"{node}.pem": f"{node}.pem", f"{node}.key": f"{node}-key.pem"}.items():
        shutil.copy(new / theirs, machines.folder / ours)
    machines.stop(node, "agent")
    machines.start_agent(node)


def _use(machines: Machines, new: Path) -> None:
    """The consoles name the new files in their settings."""
    machines.restart_consoles(
        SPILLWAY_AGENT_CA=str(new / "ca.pem"),
        SPILLWAY_AGENT_CERTIFICATE=str(new / "control-plane.pem"),
        SPILLWAY_AGENT_KEY=str(new / "control-plane.key"),
    )
