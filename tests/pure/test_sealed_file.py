"""The sealed file of a backup: whole or refused, whatever is cut off, changed, moved or foreign."""

from __future__ import annotations

import io
import os
import random
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.system.backups import sealed_file
from apps.system.backups.sealed_file import MAGIC, Reader, Unreadable, Writer

CHUNK = 4096  # instead of a megabyte, so that small files have many
WORDS = "correct horse battery staple"


@pytest.fixture(autouse=True, scope="module")
def _cheap() -> Iterator[None]:
    """A guess costs nothing here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sealed_file.COST, "n", 16)
        patch.setattr(sealed_file, "CHUNK", CHUNK)
        yield


def written(**members: bytes) -> bytes:
    stream = io.BytesIO()
    writer = Writer(stream, WORDS)
    for name, content in members.items():
        writer.member(name, [content[at : at + 900] for at in range(0, len(content), 900)])
    writer.close()
    return stream.getvalue()


def read(data: bytes, passphrase: str = WORDS) -> dict[str, bytes]:
    return {name: b"".join(content) for name, content in Reader(io.BytesIO(data), passphrase).members()}


NOISE = random.Random(1).randbytes(3 * CHUNK + 17)


def test_what_was_written_is_read() -> None:
    members = {"manifest": b"{}", "empty": b"", "database": NOISE, "zeros": bytes(2 * CHUNK)}
    assert read(written(**members)) == members


@settings(max_examples=8)
@given(st.lists(st.binary(max_size=300), max_size=5))
def test_any_members_come_back(contents: list[bytes]) -> None:
    members = {f"m{number}": content for number, content in enumerate(contents)}
    assert read(written(**members)) == members


def test_another_passphrase_opens_nothing() -> None:
    with pytest.raises(Unreadable, match="The passphrase is another one"):
        read(written(a=b"x"), "correct horse battery stapler")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04" + b"x" * 100, b"SPILLWAY BACKUP 9\n{}\n", MAGIC + b"{}\n", MAGIC])
def test_a_foreign_file_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read(data)


def test_a_beginning_that_asks_for_all_memory_is_refused() -> None:
    head = b'{"salt": "00", "n": 1099511627776, "r": 8, "p": 1}\n'
    with pytest.raises(Unreadable, match="The beginning of the file was changed"):
        read(MAGIC + head)


def test_wherever_it_is_cut_off_it_is_refused() -> None:
    whole = written(a=NOISE[: CHUNK + 5], b=b"end")
    points = [*range(0, 400, 37), *range(len(whole) - 300, len(whole), 19), len(whole) // 2]
    for point in points:
        with pytest.raises(Unreadable):
            read(whole[:point])
    assert read(whole)["b"] == b"end"


def test_wherever_a_byte_differs_it_is_refused() -> None:
    whole = written(a=b"small", b=b"words")
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        with pytest.raises(Unreadable):
            read(bytes(changed))


def chunks(data: bytes) -> tuple[bytes, list[bytes]]:
    """The beginning, and each chunk with its length."""
    start = data.index(b"\n", len(MAGIC)) + 1
    head, rest, found = data[:start], data[start:], []
    while rest:
        length = int.from_bytes(rest[:4])
        found.append(rest[: 4 + length])
        rest = rest[4 + length :]
    return head, found


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: [parts[1], parts[0], *parts[2:]],
        lambda parts: [parts[0], *parts[2:]],
        lambda parts: [parts[0], parts[0], *parts[1:]],
        lambda parts: parts[:-1],
        lambda parts: [*parts, parts[-1]],
        lambda parts: [*parts, b"x"],
    ],
    ids=["swapped", "left out", "twice", "without end", "end twice", "longer"],
)
def test_chunks_that_were_moved_are_refused(change: Callable[[list[bytes]], list[bytes]]) -> None:
    head, parts = chunks(written(a=NOISE))
    assert len(parts) >= 4
    assert read(head + b"".join(parts)) == {"a": NOISE}
    with pytest.raises(Unreadable):
        read(head + b"".join(change(parts)))


def test_a_chunk_of_another_backup_is_refused() -> None:
    (head, mine), (_, other) = chunks(written(a=NOISE)), chunks(written(a=NOISE))
    with pytest.raises(Unreadable):
        read(head + b"".join([mine[0], other[1], *mine[2:]]))


@pytest.mark.exhaustive
@pytest.mark.slow(reason="64 MB are sealed")
def test_memory_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_file, "CHUNK", 1 << 20)

    class Sink(io.RawIOBase):
        def write(self, data: object) -> int:
            return len(data)  # type: ignore[arg-type]

    tracemalloc.start()
    try:
        writer = Writer(Sink(), WORDS)  # type: ignore[arg-type]
        writer.member("large", (os.urandom(1 << 18) for _ in range(256)))
        writer.close()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
