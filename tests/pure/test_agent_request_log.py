"""Request lines on a node: from the pipe into segments, and what is left of them when something dies."""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.agent.events import Events
from apps.agent.log import segments as module
from apps.agent.log.pipe import GET_SIZE, WANTED, Pipe, allowed
from apps.agent.log.reading import Reader
from apps.agent.log.segments import Segments

CEILING = 10_000_000
NOBODY = "Pid: 7\nStart_time_sec: 100\nDroppedLogs: 0\n"


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[int]:
    """A pipe that somebody may write to."""
    descriptor = Pipe(tmp_path / "requests").open()
    yield descriptor
    os.close(descriptor)


def reader_of(pipe: int, folder: Path, ceiling: int = CEILING, said: str = NOBODY) -> tuple[Reader, Segments]:
    """A reader that a test moves by hand."""
    found = Segments(folder / "log", ceiling)
    return Reader((pipe, Pipe(folder / "requests.taken").open()), found, Events(), lambda _: said), found


def stored(found: Segments) -> bytes:
    """All lines that wait, oldest first."""
    named = [each["id"] for each in found.waiting(0)["segments"]]
    return b"".join(zlib.decompress(found.read(name) or b"") for name in named)


def test_the_pipe_has_as_much_room_as_the_machine_allows(pipe: int) -> None:
    room = fcntl.fcntl(pipe, GET_SIZE)
    assert room == WANTED or room >= min(WANTED, allowed()) >= 4096


def test_lines_become_a_segment_and_go_when_they_are_stored(pipe: int, tmp_path: Path) -> None:
    reader, found = reader_of(pipe, tmp_path)
    os.write(pipe, b"one\ntwo\n")
    assert reader.look() == 8
    assert found.waiting(0)["segments"] == []
    reader.look(last=True)
    (segment,) = found.waiting(5)["segments"]
    assert segment["lines"] == 2
    assert stored(found) == b"one\ntwo\n"
    assert found.acknowledge(segment["id"])
    assert not found.acknowledge(segment["id"])
    assert found.read(segment["id"]) is None
    assert [path.suffix for path in (tmp_path / "log").iterdir()] == [".raw"]


def test_a_killed_agent_loses_nothing_that_it_took(pipe: int, tmp_path: Path) -> None:
    reader, before = reader_of(pipe, tmp_path)
    os.write(pipe, b"one\n")
    reader.look(last=True)
    os.write(pipe, b"two\n")
    reader.look()
    os.write(pipe, b"three\n")
    reader, after = reader_of(pipe, tmp_path)  # the first one never closes its segment
    reader.look(last=True)
    assert stored(after) == b"one\ntwo\nthree\n"
    assert {each["id"][:16] for each in before.waiting(0)["segments"]} < {
        each["id"][:16] for each in after.waiting(0)["segments"]
    }
    assert after.waiting(0)["dropped"] == 0


def test_what_was_on_its_way_when_the_agent_died_comes_first(pipe: int, tmp_path: Path) -> None:
    held = Pipe(tmp_path / "requests.taken").open()  # as by HAProxy
    os.write(held, b"one\n")
    os.write(pipe, b"two\n")
    reader, found = reader_of(pipe, tmp_path)
    reader.look(last=True)
    os.close(held)
    assert stored(found) == b"one\ntwo\n"


def test_a_line_that_two_pieces_share_is_one_line(pipe: int, tmp_path: Path) -> None:
    reader, found = reader_of(pipe, tmp_path)
    os.write(pipe, b"one\ntw")
    reader.look(last=True)
    os.write(pipe, b"o\nthr")
    reader.look(last=True)
    _, after = reader_of(pipe, tmp_path)
    os.write(pipe, b"ee\n")
    assert stored(after) == b"one\ntwo\n"
    reader_of(pipe, tmp_path)[0].look(last=True)
    assert stored(Segments(tmp_path / "log", CEILING)) == b"one\ntwo\nthree\n"
    assert stored(found) == b"one\ntwo\n"


def test_a_kill_between_two_steps_of_closing_doubles_nothing(pipe: int, tmp_path: Path) -> None:
    reader, found = reader_of(pipe, tmp_path)
    os.write(pipe, b"one\n")
    reader.look()
    raw = found.raw
    content = raw.read_bytes()
    reader.look(last=True)
    raw.write_bytes(content)  # as if it had died before the piece went
    (tmp_path / "log" / f"{'f' * 16}-000000009.new").write_bytes(b"half")
    assert stored(Segments(tmp_path / "log", CEILING)) == b"one\n"


def test_a_damaged_segment_is_left_out_and_counted(pipe: int, tmp_path: Path) -> None:
    reader, found = reader_of(pipe, tmp_path)
    os.write(pipe, b"one\ntwo\n")
    reader.look(last=True)
    (name,) = [each["id"] for each in found.waiting(0)["segments"]]
    (path,) = (tmp_path / "log").glob("*.z")
    path.write_bytes(path.read_bytes()[:-3])
    assert found.read(name) is None
    assert (found.waiting(0)["segments"], found.waiting(0)["dropped"]) == ([], 2)
    assert Segments(tmp_path / "log", CEILING).waiting(0)["dropped"] == 2


def test_beyond_the_ceiling_the_oldest_go_and_are_counted_over_restarts(pipe: int, tmp_path: Path) -> None:
    reader, found = reader_of(pipe, tmp_path, ceiling=100)
    lines = [os.urandom(30).hex().encode() + b"\n" for _ in range(5)]
    for line in lines:
        os.write(pipe, line)
        reader.look(last=True)
    kept = stored(found)
    assert kept in b"".join(lines)
    assert kept.endswith(lines[-1])
    assert kept.count(b"\n") + found.waiting(0)["dropped"] == len(lines)
    assert found.waiting(0)["dropped"] > 0
    after = Segments(tmp_path / "log", 1)
    assert (after.waiting(0)["segments"], after.waiting(0)["dropped"]) == ([], len(lines))


def test_what_haproxy_could_not_write_is_counted_once(pipe: int, tmp_path: Path) -> None:
    said = ["Pid: 7\nStart_time_sec: 100\nDroppedLogs: 5\n"]
    found = Segments(tmp_path / "log", CEILING)
    reader = Reader((pipe, Pipe(tmp_path / "requests.taken").open()), found, Events(), lambda _: said[0])
    os.write(pipe, b"one\n")
    reader.look(last=True)
    assert found.waiting(0)["dropped"] == 5
    for worker, lost, total in ((7, 5, 5), (7, 8, 8), (9, 2, 10)):  # the third is a new worker
        found.take_over_count(f"{worker}-100", lost)
        assert found.waiting(0)["dropped"] == total


def test_a_disk_that_takes_nothing_loses_lines_and_says_so(
    pipe: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, found = reader_of(pipe, tmp_path)

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "splice", full)
        os.write(pipe, b"one\ntwo\n")
        assert reader.look() == 8
    assert found.waiting(0)["dropped"] == 2
    os.write(pipe, b"three\n")
    reader.look(last=True)
    assert stored(found) == b"three\n"


def test_an_agent_begins_on_a_full_disk_and_counts_what_it_could_not_keep(
    pipe: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, _ = reader_of(pipe, tmp_path)
    os.write(pipe, b"one\ntwo\n")
    reader.look()

    def full(path: Path, content: bytes) -> None:
        path.touch()
        if content:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        begun = Segments(tmp_path / "log", CEILING)
    assert (begun.waiting(0)["segments"], begun.waiting(0)["dropped"]) == ([], 2)
    assert [path.name for path in (tmp_path / "log").glob("*.raw")] == [begun.raw.name]


def test_without_splice_lines_are_copied(pipe: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "splice")  # Python 3.9
    reader, found = reader_of(pipe, tmp_path)
    assert reader.look() == 0
    os.write(pipe, b"one\n")
    reader.look(last=True)
    assert stored(found) == b"one\n"


def test_while_nobody_fetches_segments_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Segments(tmp_path / "log", CEILING)
    short = found.open_for
    monkeypatch.setattr(module, "MANY", 0)
    assert found.open_for > short


def test_a_running_reader_answers_whoever_waits(pipe: int, tmp_path: Path) -> None:
    reader, found = reader_of(pipe, tmp_path)
    reader.start()
    os.write(pipe, b"one\n")
    started = time.monotonic()
    assert [each["lines"] for each in found.waiting(5)["segments"]] == [1]
    assert time.monotonic() - started < 4
    os.write(pipe, b"two\n")
    reader.stop()
    assert stored(found) == b"one\ntwo\n"


def test_only_a_pipe_is_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "requests"
    path.write_text("a file that lies there")
    pipe = Pipe(path)
    assert not pipe.is_output_of(os.getpid())
    os.close(pipe.open())
    assert path.is_fifo()
    assert not pipe.is_output_of(os.getpid())
    assert not pipe.is_output_of(-1)
