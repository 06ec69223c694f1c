"""What the health watchdog asks haproxy, when it says no, and when BIRD is told."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.agent.static_ips import health_watchdog
from apps.agent.static_ips.health_watchdog import Watch, ask_once, look, trouble, write_announcing

Answer = Callable[[bytes], bytes]


class Speaking:
    """A Unix socket that answers one question per connection."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.heard: list[bytes] = []
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._socket.accept()
            except OSError:
                return
            with stream:
                question = stream.recv(4096)
                self.heard.append(question)
                with contextlib.suppress(BrokenPipeError):  # who asked may have lost patience
                    stream.sendall(self._answer(question))

    def close(self) -> None:
        """Nobody answers any more."""
        self._socket.close()


def worker(generation: int, digest: str = "d") -> Answer:
    """haproxy's Runtime API."""
    return lambda _: f"PATH=/bin\nSPILLWAY_GENERATION={generation}\nSPILLWAY_DIGEST={digest}\n".encode()


def listener(generation: int, digest: str = "d", status: int = 200) -> Answer:
    """A listener that knows the probe path."""
    head = f"HTTP/1.1 {status} X\r\nX-Spillway-Generation: {generation}\r\nx-spillway-digest: {digest}\r\n\r\n"
    return lambda question: head.encode() if question.startswith(b"GET /secret ") else b"HTTP/1.1 404 X\r\n\r\n"


Build = Callable[..., dict[str, Any]]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    """Make the facts of a node whose worker and listener answer as given; None for one that does not."""
    made: list[Speaking] = []

    def facts(runtime: Answer | None, front: Answer | None, wanted: Any = (("7", "d"),)) -> dict[str, Any]:
        paths = {"worker": tmp_path / "w", "listener": tmp_path / "l"}
        for path, answer in zip(paths.values(), (runtime, front), strict=True):
            if answer is not None:
                made.append(Speaking(path, answer))
        return {
            "maintenance": str(tmp_path / "maintenance"),
            "secret": "secret",
            "wanted": [list(each) for each in wanted],
            "worker": str(paths["worker"]),
            "listeners": {"lst-1": str(paths["listener"])},
        }

    yield facts
    for each in made:
        each.close()


def test_a_haproxy_that_answers_with_what_is_live_is_no_trouble(build: Build) -> None:
    assert trouble(build(worker(7), listener(7))) == ""


def test_while_the_agent_switches_the_old_worker_is_as_right_as_the_new_one(build: Build) -> None:
    assert trouble(build(worker(7), listener(8), (("7", "d"), ("8", "d")))) == ""


@pytest.mark.parametrize(
    ("runtime", "front", "why"),
    [
        (worker(6), listener(7), "haproxy runs generation 6"),
        (worker(7, "x"), listener(7), "haproxy runs generation 7"),
        (lambda _: b"", listener(7), "haproxy runs generation ?"),
        (worker(7), listener(6), "lst-1 answers with generation 6"),
        (worker(7), listener(7, "x"), "lst-1 answers with generation 7"),
        (worker(7), listener(7, status=404), "lst-1 answers with generation ?"),
        (worker(7), lambda _: b"nonsense", "lst-1 answers with generation ?"),
        (None, listener(7), "haproxy does not answer ([Errno 2] No such file or directory)"),
        (worker(7), None, "haproxy does not answer ([Errno 2] No such file or directory)"),
    ],
)
def test_anything_else_is_trouble(build: Build, runtime: Answer | None, front: Answer | None, why: str) -> None:
    assert trouble(build(runtime, front)) == why


def test_maintenance_is_trouble_whatever_haproxy_says(build: Build) -> None:
    facts = build(worker(7), listener(7))
    Path(facts["maintenance"]).touch()
    assert trouble(facts) == "maintenance"


def test_a_haproxy_that_says_nothing_is_not_waited_for(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_watchdog, "ANSWER_SECONDS", 0.1)
    never = threading.Event()

    def silent(_: bytes) -> bytes:
        never.wait(20)
        return b""

    assert trouble(build(silent, listener(7))) == "haproxy does not answer (timed out)"
    never.set()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"maintenance": "/nowhere"}'])
def test_facts_that_cannot_be_read_are_trouble(tmp_path: Path, text: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(text)
    assert ask_once(str(path)).startswith("the facts cannot be read")


def test_as_a_program_of_its_own_it_needs_nothing_of_ours(build: Build, tmp_path: Path) -> None:
    facts, alone = tmp_path / "facts.json", tmp_path / "elsewhere"
    alone.mkdir()
    copy = alone / "health_watchdog.py"
    copy.write_bytes(Path(health_watchdog.__file__).read_bytes())
    command = [sys.executable, "-ISE", str(copy), str(facts)]
    facts.write_text(json.dumps(build(worker(7), listener(7))))
    assert subprocess.run(command, check=False, timeout=30, cwd=alone).returncode == 0
    Path(str(tmp_path / "maintenance")).touch()
    done = subprocess.run(command, check=False, timeout=30, cwd=alone, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "maintenance\n")


# When BIRD is told


def test_one_bad_answer_withdraws_nothing_and_one_good_one_announces_nothing() -> None:
    watch = Watch()
    told = [watch.note(well) for well in (True, False, True, True, False, True, False, False, True, True)]
    assert told == [False, False, False, True, True, True, True, False, False, True]


@pytest.fixture
def bird(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[str]]:
    """Facts about a BIRD that is asked to read its configuration again, and what it then found there."""
    read: list[str] = []
    facts = {"control": "", "announcing": str(tmp_path / "announcing.conf")}

    def command(_control: str, words: str) -> str:
        assert words == "configure"
        read.append((tmp_path / "announcing.conf").read_text())
        return "0003 Reconfigured\n"

    monkeypatch.setattr(health_watchdog, "command", command)
    return facts, read


def test_bird_is_told_of_changes_only(
    bird: tuple[dict[str, Any], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, read = bird
    answers = iter(["", "", "", "broken", "broken", "broken", "", ""])
    monkeypatch.setattr(health_watchdog, "ask_once", lambda _: next(answers))
    watch = Watch()
    for _ in range(8):
        look(str(tmp_path / "facts.json"), facts, watch, "")
    assert read == [f"define announcing = {word};\n" for word in ("true", "false", "true")]


def test_a_bird_that_does_not_answer_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_watchdog, "ask_once", lambda _: "")
    watch, facts = Watch(), {"control": str(tmp_path / "nobody"), "announcing": str(tmp_path / "announcing.conf")}
    look("", facts, watch, "")
    for _ in range(2):
        with pytest.raises(OSError, match="No such file"):
            look("", facts, watch, "")
    assert not watch.told


def test_the_word_for_bird_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "announcing.conf"
    write_announcing(str(path), yes=False)
    write_announcing(str(path), yes=True)
    assert [each.name for each in tmp_path.iterdir()] == ["announcing.conf"]
    assert path.read_text() == "define announcing = true;\n"


def test_a_reply_of_bird_ends_with_its_last_line_however_it_comes() -> None:
    near, far = socket.socketpair()
    with near, far:
        for part in (b"1002-device1 up\n 9001 not the end\n", b"00", b"00 \n"):
            far.sendall(part)
        near.settimeout(5)
        assert health_watchdog.read_reply(near).endswith("0000 \n")
        far.sendall(b"8002 cut off")
        far.close()
        with pytest.raises(OSError, match="closed"):
            health_watchdog.read_reply(near)
