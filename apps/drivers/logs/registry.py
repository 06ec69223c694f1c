"""The choice: which store keeps the lines, by URL."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from apps.drivers.extras import missing
from apps.drivers.logs.ceilings import Ceilings
from apps.drivers.logs.clickhouse.endpoint import LOOPBACK, SCHEMES, endpoint_of, options_of
from apps.drivers.logs.contract import LogStore, Rejected, Unavailable
from apps.drivers.logs.memory import MemoryStore
from apps.drivers.logs.queues import Queues

KNOWN = (
    "logs+file:///var/lib/spillway/logs, logs+s3://bucket/prefix?region=eu-central-1, "
    "clickhouse+https://user:password@host:8443/database or memory://name"
)
# What a URL of a bucket may say; folder is of this machine.
OPTIONS = {"endpoint": "", "region": "", "folder": "/var/lib/spillway/logs", "cache_megabytes": "4096", "http": ""}

_ceilings = Ceilings()
_folders: list[tempfile.TemporaryDirectory[str]] = []  # they go with this process


def save_threads(threads: int) -> None:
    """Leave half of so many threads to everything else, in stores that are opened from now on.

    Who waits holds a thread, so an account waits with one question.
    """
    global _ceilings  # noqa: PLW0603 - what kind of process it is never changes
    _ceilings = Ceilings(waiting_each=1, held=max(1, threads // 2))


@cache
def open_logs(url: str) -> LogStore:
    """The store of a URL, the same one for the same URL. Raises LogStoreError for a URL that names none."""
    parts = urlsplit(url)
    if parts.scheme == "memory" and parts.netloc:
        return MemoryStore()
    if parts.scheme == "logs+file" and not parts.netloc and parts.path.startswith("/"):
        return _in_files(Path(unquote(parts.path)))
    if parts.scheme == "logs+s3" and parts.netloc:
        return _in_bucket(parts)
    if parts.scheme in SCHEMES:
        from apps.drivers.logs.clickhouse.store import ClickHouseStore

        return ClickHouseStore(endpoint_of(parts), _ceilings)
    raise Rejected(f"SPILLWAY_LOGS_URL names no log store: use {KNOWN}.")


@cache
def open_queues(url: str) -> Queues:
    """Where lines that are to be forwarded wait: a folder beside the store's; in a temporary one for who has none."""
    parts = urlsplit(url)
    if parts.scheme == "memory":
        _folders.append(tempfile.TemporaryDirectory(prefix="spillway-forward-"))
        return Queues(Path(_folders[-1].name))
    if parts.scheme in SCHEMES:
        folder = options_of(parts)["folder"]
    else:
        folder = _options(parts)["folder"] if parts.scheme == "logs+s3" else unquote(parts.path)
    return Queues(Path(folder) / "forward")


def _in_files(root: Path) -> LogStore:
    # Imported here, so that who keeps no lines needs no DuckDB.
    from apps.drivers.logs.files.folder import FolderFiles
    from apps.drivers.logs.parquet import ParquetStore

    return ParquetStore(FolderFiles(root), _ceilings)


def _in_bucket(parts: SplitResult) -> LogStore:
    options = _options(parts)
    if parts.username is not None or parts.password is not None:
        raise Rejected("SPILLWAY_LOGS_URL has credentials: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.")
    endpoint = urlsplit(options["endpoint"])
    if options["endpoint"] and not (endpoint.scheme in ("http", "https") and endpoint.hostname):
        raise Rejected("endpoint of SPILLWAY_LOGS_URL is no URL: write endpoint=https://storage.example.")
    if endpoint.scheme == "http" and endpoint.hostname not in LOOPBACK and options["http"] != "allowed":
        raise Rejected("endpoint of SPILLWAY_LOGS_URL is not encrypted: use https://, or add http=allowed.")
    if not options["cache_megabytes"].isdecimal() or not Path(options["folder"]).is_absolute():
        raise Rejected("SPILLWAY_LOGS_URL: cache_megabytes is a whole number, folder begins with /.")
    if lacking := missing("aws", "boto3"):
        raise Unavailable(lacking)
    from apps.drivers.logs.files.bucket import Bucket, BucketFiles
    from apps.drivers.logs.parquet import ParquetStore

    prefix = unquote(parts.path).strip("/")
    bucket = Bucket(
        name=parts.netloc,
        prefix=f"{prefix}/" if prefix else "",
        folder=Path(options["folder"]),
        endpoint=options["endpoint"] or None,
        region=options["region"] or None,
        cache_megabytes=int(options["cache_megabytes"]),
    )
    return ParquetStore(BucketFiles(bucket), _ceilings)


def _options(parts: SplitResult) -> dict[str, str]:
    given = dict(parse_qsl(parts.query))
    for name in sorted(given.keys() - OPTIONS.keys()):
        raise Rejected(f"SPILLWAY_LOGS_URL: there is no {name}; a bucket has {', '.join(OPTIONS)}.")
    return {**OPTIONS, **given}
