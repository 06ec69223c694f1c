"""The process that reads one configuration: an order as JSON on its input, documents and report on its output.

It gets neither settings nor secrets of ours, and keeps to its ceilings by itself, should the process that started it be
gone. Secrets of the file are hidden here as well: looking for them in hostile lines is work like reading them.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict
from typing import Any

from apps.importing.formats import FORMATS
from apps.importing.masking import without_secrets
from apps.importing.options import ImportOptions

# Whoever asks holds it three times: as bytes, as text and as objects.
LARGEST_ANSWER = 32 * 2**20


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
        answer = json.dumps({"error": type(error).__name__})
    sys.stdout.write(answer)


def _answer(order: dict[str, Any]) -> str:
    options = ImportOptions(**order["options"] | {"fleets": tuple(order["options"]["fleets"])})
    found = FORMATS[order["format"]].read(order["text"], order["files"], options)
    told = without_secrets(found, [*options.passwords.values(), *options.environment.values()])
    answer = json.dumps(asdict(told))
    if len(answer) > LARGEST_ANSWER:
        raise MemoryError
    return answer


if __name__ == "__main__":
    main()
