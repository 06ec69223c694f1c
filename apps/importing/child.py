"""The process that reads one configuration: an order as JSON on its input, documents and report on its output.

It gets neither settings nor secrets, and keeps to its ceilings by itself, should the process that started it be gone.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict
from typing import Any

from apps.importing.formats import FORMATS
from apps.importing.options import ImportOptions


def main() -> None:
    """Read, answer and end. Of a failure only the kind is said: its words could quote the file."""
    seconds, memory_mb = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_mb * 2**20, memory_mb * 2**20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    order = json.load(sys.stdin.buffer)
    try:
        answer = _answer(order)
    except Exception as error:  # noqa: BLE001 - whatever a hostile file does to the reader, the caller is told of it
        answer = {"error": type(error).__name__}
    sys.stdout.write(json.dumps(answer))


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    options = order["options"]
    read = FORMATS[order["format"]].read
    found = read(order["text"], order["files"], ImportOptions(**options | {"fleets": tuple(options["fleets"])}))
    return asdict(found)


if __name__ == "__main__":
    main()
