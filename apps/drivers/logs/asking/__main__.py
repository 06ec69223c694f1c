"""The process that asks DuckDB: questions as lines of JSON on its input, answers on its output, until it is closed.

It keeps to the ceilings by itself too, should the process that started it be gone.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from apps.drivers.logs.asking import sql
from apps.drivers.logs.asking.answering import Answering, patient
from apps.drivers.logs.asking.pipe import AskedFiles
from apps.drivers.logs.contract import LogStoreError, Query
from apps.drivers.logs.files.folder import FolderFiles
from apps.drivers.logs.files.layout import hours_of_each, live_files
from apps.drivers.logs.files.port import Files
from apps.drivers.logs.wire import query_from_json

# What Python, DuckDB's own code and its threads need beside the memory that DuckDB counts.
BESIDE_MB = 1024


def main() -> None:
    """Answer until the input ends. Files lie in the folder that is named; without one they are asked for."""
    root, memory_mb, threads = Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
    files: Files = FolderFiles(root) if sys.argv[2] == "here" else AskedFiles(root)
    most = (memory_mb + BESIDE_MB) * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # short of memory, the machine ends this process and not the console
        Path("/proc/self/oom_score_adj").write_text("500")
    connection = _connect(memory_mb, threads)
    for line in sys.stdin.buffer:
        question = json.loads(line)
        watch = threading.Timer(question["seconds"] + 1.0, os._exit, [1])
        watch.daemon = True
        watch.start()
        answer = _answer(connection, root, files, question)
        sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=True).encode() + b"\n")
        sys.stdout.buffer.flush()
        watch.cancel()


def _connect(memory_mb: int, threads: int) -> Any:
    connection = duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": f"{memory_mb}MB",
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _answer(connection: Any, root: Path, files: Files, question: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"answer": _ask(connection, files, question)}
    except LogStoreError as error:
        return {"error": type(error).__name__, "message": error.message}
    except (MemoryError, duckdb.OutOfMemoryException):
        return {"error": "TooLarge", "message": "The question needs more memory than one may use: take a shorter time."}
    except (duckdb.IOException, duckdb.InternalException, duckdb.FatalException, OSError) as error:
        return {"error": "Unavailable", "message": _without(root, str(error))}
    except duckdb.Error as error:
        return {"error": "Rejected", "message": _without(root, str(error))}


def _ask(connection: Any, files: Files, question: dict[str, Any]) -> dict[str, Any]:
    accounts, given = tuple(map(int, question["accounts"])), list(question["given"])
    if question["ask"] == "sql":
        text, start, end, rows = given
        query = query_from_json({"start": start, "end": end, "conditions": []})
        window = (_text_of(query.start), _text_of(query.end))
        return sql.answer(connection, _paths(files, accounts, query), window, text, rows)
    if question["ask"] != "one":
        given[0] = query_from_json(given[0])
    if question["ask"] == "export":
        connection.execute("SET temp_directory = '" + str(files.working).replace("'", "''") + "'")
    answering = Answering(connection, files, accounts)
    asked: dict[str, Callable[..., dict[str, Any]]]
    asked = {"search": answering.search, "histogram": answering.histogram, "facets": answering.facets}
    asked |= {"groups": answering.groups, "series": answering.series, "outcomes": answering.outcomes}
    asked |= {"one": answering.one, "export": answering.export}
    return asked[question["ask"]](*given)


@patient
def _paths(files: Files, accounts: Sequence[int], query: Query) -> list[str]:
    """All lines of the window; they stay until the question is answered."""
    hours = hours_of_each(files, accounts, query.start, query.end)
    with files.local([file.entry for hour in hours for file in live_files(files, hour)]) as paths:
        return list(map(str, paths))


def _text_of(time: datetime) -> str:
    return time.astimezone(UTC).replace(tzinfo=None).isoformat()


def _without(root: Path, message: str) -> str:
    """A message of DuckDB without the place where lines lie."""
    return message.replace(str(root), "…")[:1000]


if __name__ == "__main__":
    main()
