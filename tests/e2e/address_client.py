"""A client of the tests for addresses that move: asks once, or all the time and writes down when and how it went.

    python -m tests.e2e.address_client HOST:PORT [FILE SECONDS]

Each line of FILE is `[began, ended, ok]`, by the monotonic clock that all processes of a machine share. A request
fails that has no answer after SECONDS.
"""

from __future__ import annotations

import http.client
import json
import signal
import sys
import threading
import time
from typing import TextIO

THREADS = 4
PAUSE = 0.01
TIMEOUT = 3.0


def ask(place: str, timeout: float = TIMEOUT) -> bool:
    """One request on a new connection; True for an answer with 200."""
    host, _, port = place.rpartition(":")
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=timeout)
    try:
        connection.request("GET", "/", headers={"host": "a.example"})
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return response.status == 200
    finally:
        connection.close()


def keep_asking(place: str, timeout: float, out: TextIO, ended: threading.Event) -> None:
    """Until the end; a line per request."""
    while not ended.is_set():
        began = time.monotonic()
        ok = ask(place, timeout)
        out.write(json.dumps([began, time.monotonic(), ok]) + "\n")
        out.flush()
        time.sleep(PAUSE)


def main(words: list[str]) -> int:
    """Once without a file, else until SIGTERM."""
    if len(words) == 1:
        return int(not ask(words[0]))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with open(words[1], "w", encoding="ascii") as out:  # noqa: PTH123
        threads = [
            threading.Thread(target=keep_asking, args=(words[0], float(words[2]), out, ended)) for _ in range(THREADS)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
