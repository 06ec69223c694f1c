"""Files that lie elsewhere, for the process that asks DuckDB: it reaches no network and asks who started it.

Its questions and the answers are lines of JSON between those of the question itself. It is given names and copies of
the files of the accounts that are asked about, and no others, however it asks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from apps.drivers.logs import contract
from apps.drivers.logs.contract import LogStoreError, Rejected
from apps.drivers.logs.files.folder import FolderFiles
from apps.drivers.logs.files.layout import account_folder
from apps.drivers.logs.files.port import LONGEST_S, Entry, Files

Need = dict[str, Any]


class AskedFiles(FolderFiles):
    """What the process sees: reads go through the pipe, its own folder is for unfinished files."""

    def entries(self, under: str, start: str = "", end: str = "") -> list[Entry]:
        """As listed there."""
        return [Entry(*each) for each in _asked("entries", under, start, end)]

    def read(self, name: str) -> bytes:
        """As it is there."""
        (content,) = _asked("read", name)
        return str(content).encode("latin-1")

    @contextmanager
    def local(self, entries: Sequence[Entry], seconds: float = LONGEST_S) -> Iterator[list[Path]]:  # noqa: ARG002 - the port
        """Copies that stay until the question is answered."""
        yield [Path(each) for each in _asked("local", [[each.name, each.size, each.written] for each in entries])]


def _asked(need: str, *given: object) -> list[Any]:
    sys.stdout.buffer.write(json.dumps({"need": need, "given": given}).encode() + b"\n")
    sys.stdout.buffer.flush()
    said = json.loads(sys.stdin.buffer.readline())
    if "gone" in said:
        raise FileNotFoundError(said["gone"])
    if "error" in said:
        raise getattr(contract, said["error"], LogStoreError)(said["message"])
    found: list[Any] = said["found"]
    return found


class Lender:
    """Answers what the process asks for one question; copies are kept until `held` is closed."""

    def __init__(self, files: Files, accounts: Sequence[int], held: ExitStack) -> None:
        self._files = files
        self._own = tuple(account_folder(account) for account in accounts)
        self._held = held

    def answer(self, need: Need, seconds: float) -> Need:
        """What it asked for, or why there is none."""
        try:
            return {"found": self._found(need["need"], need["given"], seconds)}
        except FileNotFoundError as error:
            return {"gone": str(error)}
        except LogStoreError as error:
            return {"error": type(error).__name__, "message": error.message}
        except OSError as error:
            return {"error": "Unavailable", "message": f"The cache of the log store cannot be used: {error}"}

    def _found(self, need: str, given: Sequence[Any], seconds: float) -> list[Any]:
        if need == "entries":
            under, start, end = given
            self._must_be_own([under])
            found = self._files.entries(under, start, end)
            return [[each.name, each.size, each.written] for each in found]
        if need == "read":
            self._must_be_own(given)
            return [self._files.read(given[0]).decode("latin-1")]
        entries = [Entry(*each) for each in given[0]]
        self._must_be_own([each.name for each in entries])
        lent: AbstractContextManager[list[Path]] = self._files.local(entries, seconds)
        return [str(path) for path in self._held.enter_context(lent)]

    def _must_be_own(self, names: Sequence[str]) -> None:
        for name in names:
            if not name.startswith(self._own) or ".." in name.split("/"):
                raise Rejected("Only the files of the account that is asked about can be read.")
