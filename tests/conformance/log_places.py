"""Where tests keep lines: a folder, and a bucket of moto's server with a folder for copies."""

from __future__ import annotations

import functools
import logging
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ports import spare_port

if TYPE_CHECKING:
    from apps.drivers.logs.files.folder import FolderFiles
    from apps.drivers.logs.files.port import Files

needs_duckdb = pytest.mark.skipif(find_spec("duckdb") is None, reason="NOT TESTED: DuckDB is not installed; run make.")
needs_moto = pytest.mark.skipif(find_spec("moto") is None, reason="NOT TESTED: moto is not installed; run make.")
PLACES = [
    pytest.param("folder", marks=needs_duckdb),
    pytest.param("bucket", marks=(needs_duckdb, needs_moto)),
]
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret", "AWS_DEFAULT_REGION": "eu-central-1"}


@functools.cache
def s3_server() -> str:
    """Where moto answers until this process ends."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    port = spare_port()
    ThreadedMotoServer("127.0.0.1", port, verbose=False).start()
    return f"http://127.0.0.1:{port}"


def new_bucket() -> str:
    """An empty bucket, of its own name."""
    name = f"logs-{uuid.uuid4().hex[:12]}"
    s3().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    return name


@functools.cache
def s3() -> Any:
    """A client of boto3 for it."""
    import boto3

    session: Any = boto3.Session(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"])
    return session.client("s3", region_name=KEYS["AWS_DEFAULT_REGION"], endpoint_url=s3_server())


def files_at(kind: str, root: Path, **given: Any) -> Files:
    """Files of a new folder or bucket."""
    if kind == "folder":
        from apps.drivers.logs.files.folder import FolderFiles

        return FolderFiles(root)
    from apps.drivers.logs.files.bucket import Bucket, BucketFiles

    return BucketFiles(Bucket(new_bucket(), "some/where/", root, s3_server(), "eu-central-1", **given))


@contextmanager
def in_bucket(files: FolderFiles, root: Path) -> Iterator[Files]:
    """The same files in a bucket of a server of their own, copies of them below `root`."""
    import boto3
    from botocore.config import Config

    from apps.drivers.logs.files.bucket import Bucket, BucketFiles

    port = spare_port()
    endpoint = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        session: Any = boto3.Session(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"])
        patient = Config(retries={"total_max_attempts": 10})
        client = session.client("s3", region_name="us-east-1", endpoint_url=endpoint, config=patient)
        client.create_bucket(Bucket="logs")
        for path in sorted(files.root.glob("account=*/*/*/*")):
            with path.open("rb") as opened:
                client.put_object(Bucket="logs", Key=str(path.relative_to(files.root)), Body=opened)
        yield BucketFiles(Bucket("logs", "", root, endpoint, "us-east-1"))
    finally:
        server.kill()
        server.wait()


@contextmanager
def opened_at(kind: str, root: Path, **given: Any) -> Iterator[Any]:
    """A store there, closed in the end."""
    from apps.drivers.logs.parquet import ParquetStore

    store = ParquetStore(files_at(kind, root), **given)
    with pytest.MonkeyPatch.context() as patched:
        for name, value in KEYS.items():
            patched.setenv(name, value)
        yield store
    store.close()
