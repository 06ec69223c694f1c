"""A file of members that only its passphrase opens, written and read as a stream with little memory.

After a line that says what it is comes a line with the salt and the cost of scrypt, then chunks: four bytes of length
and a Fernet token. Each token holds its number and whether it is the last, so that nothing can be left out, added or
moved. Inside of them a member is a line of JSON, frames of compressed bytes, and the digest of what it held.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"SPILLWAY BACKUP 1\n"
CHUNK = 1 << 20
# 64 MB of memory and a fifth of a second for each guess.
COST = {"n": 1 << 16, "r": 8, "p": 1}
MOST_COST = 1 << 20
LONGEST_LINE = 4096


class Unreadable(Exception):
    """A sentence: no backup of ours, another passphrase, cut off, or changed."""


def _key(passphrase: str, salt: bytes, cost: dict[str, int]) -> Fernet:
    derived = Scrypt(salt=salt, length=32, n=cost["n"], r=cost["r"], p=cost["p"]).derive(passphrase.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


class Writer:
    """Members one after the other, then `close`; a file without its end is never taken for whole."""

    def __init__(self, stream: IO[bytes], passphrase: str) -> None:
        salt = os.urandom(16)
        self._stream, self._box = stream, _key(passphrase, salt, COST)
        self._buffer, self._number = bytearray(), 0
        stream.write(MAGIC + json.dumps({"salt": salt.hex(), **COST}).encode() + b"\n")

    def member(self, name: str, content: Iterable[bytes]) -> tuple[str, int]:
        """Write one; its digest (SHA-256, hex) and size."""
        self._put(_framed(json.dumps({"name": name}).encode()))
        press, digest, size = zlib.compressobj(3), hashlib.sha256(), 0
        for piece in content:
            digest.update(piece)
            size += len(piece)
            self._frames(press.compress(piece))
        self._frames(press.flush())
        self._put(_framed(b"") + _framed(json.dumps({"sha256": digest.hexdigest(), "size": size}).encode()))
        return digest.hexdigest(), size

    def close(self) -> None:
        """The end, with which the file is whole."""
        self._put(_framed(b""))
        self._seal(last=True)

    def _frames(self, data: bytes) -> None:
        for start in range(0, len(data), CHUNK):
            self._put(_framed(data[start : start + CHUNK]))

    def _put(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= CHUNK:
            self._seal()

    def _seal(self, *, last: bool = False) -> None:
        piece = bytes(self._buffer[:CHUNK])
        del self._buffer[:CHUNK]
        if last and self._buffer:
            raise AssertionError("the last chunk has room for all that is left")
        token = base64.urlsafe_b64decode(self._box.encrypt(struct.pack(">Q?", self._number, last) + piece))
        self._stream.write(struct.pack(">I", len(token)) + token)
        self._number += 1


class Reader:
    """Members in their order. Raises Unreadable at the first byte that is not as it was written."""

    def __init__(self, stream: IO[bytes], passphrase: str) -> None:
        self._stream = stream
        if stream.read(len(MAGIC)) != MAGIC:
            raise Unreadable("This is no backup of Spillway, or one of a version that this one cannot read.")
        self._box = _key(passphrase, *_header(stream.readline(LONGEST_LINE)))
        self._buffer, self._number, self._last = bytearray(), 0, False

    def members(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Each name with its bytes, which are to be read before the next one."""
        while head := self._frame():
            content = self._content()
            yield str(_document(head)["name"]), content
            for _ in content:
                continue
        if self._buffer or not self._last or self._stream.read(1):
            raise Unreadable("The file goes on after its end: it was changed.")

    def _content(self) -> Iterator[bytes]:
        unpress, digest, size = zlib.decompressobj(), hashlib.sha256(), 0
        while frame := self._frame():
            try:
                piece = unpress.decompress(frame, CHUNK)
                while piece:
                    digest.update(piece)
                    size += len(piece)
                    yield piece
                    piece = unpress.decompress(unpress.unconsumed_tail, CHUNK)
            except zlib.error:
                raise Unreadable("The file was changed.") from None
        if _document(self._frame()) != {"sha256": digest.hexdigest(), "size": size}:
            raise Unreadable("What the file holds is not what was written.")

    def _frame(self) -> bytes:
        (length,) = struct.unpack(">I", self._take(4))
        return self._take(length)

    def _take(self, count: int) -> bytes:
        if count > 2 * CHUNK:
            raise Unreadable("The file was changed.")
        while len(self._buffer) < count:
            self._next()
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def _next(self) -> None:
        raw = b"" if self._last else self._stream.read(4)
        length = struct.unpack(">I", raw)[0] if len(raw) == 4 else 0
        token = self._stream.read(length) if 0 < length <= 2 * CHUNK else b""
        if not token or len(token) != length:
            raise Unreadable("The file is cut off or was changed: its end is missing.")
        try:
            piece = self._box.decrypt(base64.urlsafe_b64encode(token))
        except InvalidToken:
            if self._number == 0:
                raise Unreadable("The passphrase is another one, or the file was changed.") from None
            raise Unreadable("The file was changed.") from None
        number, self._last = struct.unpack(">Q?", piece[:9])
        if number != self._number:
            raise Unreadable("Parts of the file were moved or left out.")
        self._number += 1
        self._buffer += piece[9:]


def _framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _header(line: bytes) -> tuple[bytes, dict[str, int]]:
    said = _document(line)
    try:
        salt, cost = bytes.fromhex(said["salt"]), {name: int(said[name]) for name in COST}
    except (KeyError, ValueError, TypeError):
        raise Unreadable("The beginning of the file was changed.") from None
    if not 2 <= cost["n"] <= MOST_COST or cost["n"] & (cost["n"] - 1) or cost["r"] != 8 or not 1 <= cost["p"] <= 4:
        raise Unreadable("The beginning of the file was changed.")
    return salt, cost


def _document(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreadable("The file was changed.")
    return found
