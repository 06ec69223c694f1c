"""Requests at a steady rate over several nodes, each node its part of them, and what became of them."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.e2e.region_servers import HOST


def load(
    ports: Sequence[int],
    parts: Sequence[int],
    rate: float,
    seconds: float,
    *,
    headers: Mapping[str, str] | None = None,
    skip_s: float = 0.0,
    source: str = "",
) -> Counter[int]:
    """Statuses of the answers between `skip_s` and `seconds`; the part of each node is a number of its own.

    With a `source` each request has a connection of its own from there; the status of one that is closed is 0.
    """
    found: Counter[int] = Counter()
    lock = threading.Lock()
    start = time.monotonic() + 0.2
    whole = sum(parts)

    def one(port: int, own_rate: float) -> None:
        counted: Counter[int] = Counter()
        from_where = (source, 0) if source else None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=from_where)
        number = 0
        while True:
            time.sleep(max(0.0, start + number / own_rate - time.monotonic()))
            number += 1
            status = _ask(connection, headers or {}, alone=bool(source))
            now = time.monotonic()
            if now >= start + seconds:  # also where a busy machine is behind
                break
            if now >= start + skip_s:
                counted[status] += 1
        connection.close()
        with lock:
            found.update(counted)

    threads = [
        threading.Thread(target=one, args=(port, rate * part / whole))
        for port, part in zip(ports, parts, strict=True)
        if part
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _ask(connection: http.client.HTTPConnection, headers: Mapping[str, str], *, alone: bool) -> int:
    try:
        connection.request("GET", "/", headers={"Host": HOST, **headers})
        response = connection.getresponse()
        response.read()
    except ConnectionError:
        if not alone:
            raise
        return 0
    finally:
        if alone:
            connection.close()
    return response.status
