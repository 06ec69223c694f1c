"""What each safeguard of the agent is for: with it the node stands, and without it the harm is there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.agent.check.sandbox import Sandbox
from apps.agent.check.trial_run import trial_run
from apps.agent.errors import Malformed, Refusal, Superseded
from apps.agent.release.releases import Releases
from apps.agent.safeguards import Safeguards, newer_only
from apps.compiler.bundle import Bind
from apps.compiler.model.operations import ReplaceMap, SetMapEntry
from tests.conformance.bundles import MAP, make_bundle
from tests.conformance.inside import Inside, always, inside, nothing
from tests.conformance.real_agent import PATIENCE, wait_until

pytestmark = [pytest.mark.long, pytest.mark.e2e]

BOGUS = "frontend lst-9\n    bogus word\n"
DOES_NOT_START = "frontend lst-3\n    bind unix@/nonexistent/x.sock\n    default_backend pool-2\n"
SECOND = 'frontend lst-2\n    mode tcp\n    bind "${SPILLWAY_BIND_LST_2}"\n    default_backend pool-2\n'


class Links:
    """Switches the symlink as the agent does and notes where it pointed."""

    def __init__(self) -> None:
        self.visited: list[str] = []

    def __call__(self, link: Path, target: Path) -> None:
        self.visited.append(target.name)
        Safeguards().replace_link(link, target)


@contextmanager
def another_haproxy(node: Inside) -> Iterator[None]:
    """A program that takes its part of the connections to the node's port and answers 503."""
    config = node.folder / "foreign.cfg"
    config.write_text(
        "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 1s\n"
        f"frontend x\n bind 127.0.0.1:{node.port}\n http-request return status 503\n"
    )
    process = subprocess.Popen(["haproxy", "-db", "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: any(node.get()[0] == 503 for _ in range(10)), "the stranger takes connections")
        yield
    finally:
        process.kill()
        process.wait()


# The fence


def test_an_older_generation_is_superseded() -> None:
    with inside() as node:
        node.push(make_bundle(node.port, answer="new"), 2)
        with pytest.raises(Superseded):
            node.push(make_bundle(node.port, answer="old"), 1)
        assert node.get() == (200, "new")


def test_without_the_fence_an_older_generation_replaces_a_newer_one() -> None:
    with inside(fence=nothing) as node:
        node.push(make_bundle(node.port, answer="new"), 2)
        assert node.push(make_bundle(node.port, answer="old"), 1)["generation"] == 1
        assert node.get() == (200, "old")


def _overtaken(fence: Callable[[int, int], None]) -> tuple[str, int]:
    """A push of generation 2 during whose trial run generation 3 comes by runtime operations: what runs in the end."""

    def overtaken_during_the_trial_run(*given: Any) -> None:
        if given[4] == 2:
            node.operate((SetMapEntry(MAP, "c.example/", "pool-1"),), newer, first.digest, 3)
        trial_run(*given)

    with inside(trial_run=overtaken_during_the_trial_run, fence=fence) as node:
        first = make_bundle(node.port)
        newer = make_bundle(node.port, entries={"a.example/": "pool-1", "c.example/": "pool-1"})
        node.push(first, 1)
        try:
            node.push(make_bundle(node.port, answer="late"), 2)
        except Superseded:
            return "superseded", node.node.confirmed.generation
        return "pushed", node.node.confirmed.generation


def test_a_push_that_is_overtaken_during_its_trial_run_is_superseded_at_the_switch() -> None:
    assert _overtaken(newer_only) == ("superseded", 3)


def test_a_fence_at_the_start_alone_lets_an_overtaken_push_win() -> None:
    started: set[int] = set()

    def only_at_the_start(asked: int, running: int) -> None:
        if asked not in started:
            newer_only(asked, running)
        started.add(asked)

    assert _overtaken(only_at_the_start) == ("pushed", 2)


# The check and its sandbox


def _stage_of_a_bogus_word(**taken_away: Any) -> tuple[str, int | None, list[int]]:
    """Where a file with an unknown word is refused, in which line, and which generations had a trial run."""
    tried: list[int] = []

    def noting(*given: Any) -> None:
        tried.append(given[4])
        trial_run(*given)

    with inside(trial_run=noting, **taken_away) as node:
        with pytest.raises(Refusal) as refusal:
            node.push(make_bundle(node.port, extra=BOGUS), 1)
        return refusal.value.stage, refusal.value.line, tried


def test_a_file_that_the_check_refuses_is_never_started() -> None:
    assert _stage_of_a_bogus_word() == ("validate", 21, [])


def test_without_the_check_a_process_is_started_from_a_file_that_was_never_read() -> None:
    assert _stage_of_a_bogus_word(check=nothing) == ("trial_run", 21, [1])


class NoSandbox(Sandbox):
    """Runs everything with all rights of the agent."""

    def prefix(self, network: bool, seconds: float) -> list[str]:  # noqa: ARG002 — the base class's
        return []


def _steal(sandbox: type[Sandbox]) -> str:
    """Push a file that answers with the content of a file that root alone may read."""
    with inside(sandbox=sandbox) as node:
        secret = node.folder / "secret"
        secret.write_text("the key")
        secret.chmod(0o600)
        thief = f"backend pool-3\n    http-request return status 200 content-type text/plain file {secret}\n"
        try:
            node.push(make_bundle(node.port, entries={"a.example/": "pool-3"}, extra=thief), 1)
        except Refusal as refusal:
            return refusal.stage
        return node.get()[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: the sandbox takes rights away only where started as root")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="NOT CHECKED: setpriv is missing")
def test_a_file_that_reads_what_root_alone_may_read_is_refused_in_the_box() -> None:
    assert _steal(Sandbox) == "validate"


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: the sandbox takes rights away only where started as root")
def test_without_the_box_a_file_of_root_is_served() -> None:
    assert _steal(NoSandbox) == "the key"


# The trial run


def _live_during_a_bad_start(**taken_away: Any) -> tuple[str, list[str]]:
    links = Links()
    with inside(replace_link=links, **taken_away) as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Refusal) as refusal:
            node.push(make_bundle(node.port, extra=DOES_NOT_START), 2)
        assert node.get() == (200, "one")
        return refusal.value.stage, links.visited


def test_a_file_that_passes_the_check_and_does_not_start_never_lies_at_the_live_path() -> None:
    assert _live_during_a_bad_start() == ("trial_run", ["1"])


def test_without_the_trial_run_it_lies_at_the_live_path_until_the_reload_has_failed() -> None:
    assert _live_during_a_bad_start(trial_run=nothing) == ("confirm", ["1", "2", "1"])


# Ports of others


def _stage_of_a_taken_port(**taken_away: Any) -> tuple[str, list[str]]:
    links = Links()
    with inside(replace_link=links, **taken_away) as node:
        node.push(make_bundle(node.port), 1)
        with socket.create_server(("127.0.0.1", 0)) as stranger:
            bind = Bind("lst-2", None, stranger.getsockname()[1], "tcp")
            with pytest.raises(Refusal) as refusal:
                node.push(make_bundle(node.port, extra=SECOND, binds=(bind,)), 2)
        return refusal.value.stage, links.visited


def test_a_port_that_another_program_holds_is_found_before_anything_is_touched() -> None:
    assert _stage_of_a_taken_port() == ("switch", ["1"])


def test_without_looking_at_ports_the_running_haproxy_is_reloaded_into_a_failure() -> None:
    assert _stage_of_a_taken_port(port_taken=nothing) == ("confirm", ["1", "2", "1"])


# Confirmation by the new worker


def test_a_push_is_refused_while_another_program_answers_on_the_port() -> None:
    with inside() as node:
        node.push(make_bundle(node.port), 1)
        with another_haproxy(node), pytest.raises(Refusal, match="another program answers") as refusal:
            node.push(make_bundle(node.port, answer="two"), 2)
        assert (refusal.value.stage, node.node.confirmed.generation) == ("confirm", 1)
        wait_until(lambda: node.get() == (200, "one"), "the old configuration answers alone")


def test_without_confirmation_a_push_succeeds_while_another_program_answers() -> None:
    with inside(confirm=nothing) as node:
        node.push(make_bundle(node.port), 1)
        wait_until(lambda: node.get() == (200, "one"), "the worker is up")
        with another_haproxy(node):
            assert node.push(make_bundle(node.port, answer="two"), 2)["generation"] == 2
            wait_until(lambda: any(node.get()[0] == 503 for _ in range(10)), "the stranger still answers")


# The switch


def _after_a_failed_switch(**taken_away: Any) -> tuple[str, bool]:
    """Name of the live release, and whether what lies there is what is said to run."""
    with inside(trial_run=nothing, **taken_away) as node:
        node.push(make_bundle(node.port), 1)
        with pytest.raises(Refusal):
            node.push(make_bundle(node.port, extra=DOES_NOT_START), 2)
        state = node.node.state()
        return node.live, state["on_disk"] == state["digest"]


def test_a_failed_switch_puts_the_old_symlink_back() -> None:
    assert _after_a_failed_switch() == ("1", True)


def test_without_putting_it_back_the_next_cold_start_meets_the_bad_file() -> None:
    assert _after_a_failed_switch(put_back=nothing) == ("2", False)


def _moments_without_live(folder: Path, replace_link: Callable[[Path, Path], None]) -> int:
    """How often a watcher finds no file at the live path while it is switched to and fro."""
    missing, looked, ended = [0], threading.Event(), threading.Event()
    releases = Releases(folder, -1, replace_link)
    both = [
        releases.seal(releases.prepare(number, {"haproxy.cfg": b""}, None, frozenset()), number) for number in (1, 2)
    ]
    releases.point_live(both[0])

    def look(path: Path) -> None:
        while not ended.is_set():
            missing[0] += not path.exists()
            looked.set()

    watcher = threading.Thread(target=look, args=(releases.live_link / "haproxy.cfg",))
    watcher.start()
    try:
        assert looked.wait(PATIENCE)
        for _ in range(10):
            for release in reversed(both):
                releases.point_live(release)
    finally:
        ended.set()
        watcher.join()
    return missing[0]


def _unlink_and_link(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    time.sleep(0.02)  # as long as a slow disk may take
    link.symlink_to(target)


def test_there_is_a_file_at_the_live_path_at_every_instant(tmp_path: Path) -> None:
    assert _moments_without_live(tmp_path, Safeguards().replace_link) == 0


def test_a_symlink_that_is_removed_and_made_again_leaves_moments_without_a_file(tmp_path: Path) -> None:
    assert _moments_without_live(tmp_path, _unlink_and_link) > 0


# Runtime operations


def _operate_from_another_base(**taken_away: Any) -> tuple[str, str]:
    """Operations that lead from "one" to a new map, sent to a node that runs "two": what it says, what it answers."""
    with inside(**taken_away) as node:
        one, two = make_bundle(node.port, answer="one"), make_bundle(node.port, answer="two")
        wanted = make_bundle(node.port, answer="one", entries={"a.example/": "pool-1", "c.example/": "pool-1"})
        node.push(two, 1)
        try:
            operations = (SetMapEntry(MAP, "c.example/", "pool-1"),)
            state = node.operate(operations, wanted, one.digest, 2, "haproxy.cfg")
        except Refusal as refusal:
            return refusal.stage, node.get()[1]
        return "runs what was wanted" if state["digest"] == wanted.digest else "else", node.get()[1]


def test_operations_from_another_base_are_refused() -> None:
    assert _operate_from_another_base() == ("runtime", "two")


def test_without_the_base_digest_a_node_claims_what_its_worker_does_not_run() -> None:
    assert _operate_from_another_base(base=nothing) == ("runs what was wanted", "two")


@pytest.mark.parametrize(("way", "sign"), [("entry", ";"), ("entry", "\n"), ("map", "\n")])
def test_a_command_hidden_in_a_maps_value_is_refused(way: str, sign: str) -> None:
    assert _smuggle(way, sign) == ("refused", 200)


def test_without_the_alphabet_a_value_of_a_map_stops_the_listener() -> None:
    assert _smuggle("entry", ";", safe_word=always) == ("done", 0)


def _smuggle(way: str, sign: str, **taken_away: Any) -> tuple[str, int]:
    """Hide `shutdown frontend` in a value of a map, as one entry or in a map that is replaced as a whole."""
    with inside(**taken_away) as node:
        entries = {"a.example/": "pool-1"}
        old = make_bundle(node.port, entries=entries)
        node.push(old, 1)
        value = f"pool-1{sign}disable frontend lst-1"
        wanted = make_bundle(node.port, entries={**entries, "x.example/": value})
        operation = SetMapEntry(MAP, "x.example/", value) if way == "entry" else ReplaceMap(MAP)
        try:
            node.operate((operation,), wanted, old.digest, 2, *([MAP] if way == "map" else []))
        except Refusal:
            return "refused", node.get()[0]
        return "done", node.get()[0]


# Digests


def _forge(**taken_away: Any) -> int:
    """Push a bundle of which one file was changed on the way: the status for the host that was put into it."""
    with inside(**taken_away) as node:
        bundle = make_bundle(node.port)
        forged = replace(bundle, files={**bundle.files, MAP: b"evil.example/ pool-1\n"})
        try:
            node.push(forged, 1)
        except Malformed:
            return 0
        return node.get("evil.example")[0]


def test_a_bundle_that_was_changed_on_the_way_is_refused() -> None:
    assert _forge() == 0


def test_without_the_digests_a_changed_bundle_is_served() -> None:
    assert _forge(same_content=always) == 200


# The end


def test_a_node_that_ends_in_the_middle_of_a_reload_takes_haproxy_with_it() -> None:
    with inside(confirm=nothing) as node:
        node.push(make_bundle(node.port), 1)
        wait_until(lambda: node.node.proxy.processes() is not None, "the first one is up")
        node.push(make_bundle(node.port, answer="two"), 2)
        node.node.close()
        assert subprocess.run(["pgrep", "-f", str(node.folder)], capture_output=True, check=False).stdout == b""
