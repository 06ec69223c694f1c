"""The choice: which store keeps the lines, by URL."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from apps.drivers.logs.contract import LogStore, Rejected
from apps.drivers.logs.memory import MemoryStore
from apps.drivers.logs.queues import Queues

KNOWN = "logs+file:///var/lib/spillway/logs or memory://name"
LATER = {
    "logs+s3": "Buckets are not supported yet: mount one as a folder, or use a folder of this machine.",
    "clickhouse": "ClickHouse is not supported yet: use a folder of this machine.",
}


@cache
def open_logs(url: str) -> LogStore:
    """The store of a URL, the same one for the same URL. Raises Rejected for a URL that names none."""
    parts = urlsplit(url)
    if parts.scheme in LATER:
        raise Rejected(LATER[parts.scheme])
    if parts.scheme == "memory" and parts.netloc:
        return MemoryStore()
    if parts.scheme == "logs+file" and not parts.netloc and parts.path.startswith("/"):
        return _in_files(Path(unquote(parts.path)))
    raise Rejected(f"{url} names no log store: use {KNOWN}.")


@cache
def open_queues(url: str) -> Queues:
    """Where lines that are to be forwarded wait: beside the store's, for a store in memory in a temporary folder."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return Queues(Path(tempfile.mkdtemp(prefix="spillway-forward-")))
    return Queues(Path(unquote(parts.path)) / "forward")


def _in_files(root: Path) -> LogStore:
    # Imported here, so that who keeps no lines needs no DuckDB.
    from apps.drivers.logs.parquet import ParquetStore

    return ParquetStore(root)
