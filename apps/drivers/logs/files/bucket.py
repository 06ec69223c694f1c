"""Files in an S3-compatible bucket: an object appears with all of its bytes or not at all, and is never written over.

Questions read copies on this machine (`cache.py`). Credentials are found as boto3 finds them: the environment, a file,
the role of the instance.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from apps.drivers.logs.contract import Unavailable
from apps.drivers.logs.files.cache import Cache
from apps.drivers.logs.files.folder import locked_by_one, working_folder
from apps.drivers.logs.files.port import LONGEST_S, Entry

CONNECT_S, READ_S, ATTEMPTS = 3, 10, 3
MOST_DELETED = 1000
GONE = ("NoSuchKey", "404")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Which bucket, what names begin with there, and the folder of this machine for copies of so many megabytes."""

    name: str
    prefix: str
    folder: Path
    endpoint: str | None = None
    region: str | None = None
    cache_megabytes: int = 4096


class BucketFiles:
    """Files in a bucket; any number of processes may have it open."""

    at_once = 8
    # A list for each account is paid for.
    pause_s = 60.0

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._making = threading.Lock()
        self._made: Any = None
        which = hashlib.sha256(f"{bucket.endpoint} {bucket.region} {bucket.prefix}".encode()).hexdigest()[:8]
        self._cache = Cache(bucket.folder, f"{bucket.name}-{which}", bucket.cache_megabytes * 10**6, self._fetch)

    @property
    def root(self) -> Path:
        """Copies lie below."""
        return self._bucket.folder

    @property
    def working(self) -> Path:
        """Beside the copies. Raises Unavailable."""
        return working_folder(self._bucket.folder)

    def folders(self) -> list[str]:
        """What the bucket calls common prefixes."""
        with self._trouble():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket.name, Prefix=self._bucket.prefix, Delimiter="/"
            )
            found = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", [])]
        return [name.removeprefix(self._bucket.prefix).rstrip("/") for name in found]

    def entries(self, under: str, start: str = "", end: str = "") -> list[Entry]:
        """Listed in the order of their names, where a merged file's notes follow it: they were there before it was."""
        prefix = self._bucket.prefix
        found: list[Entry] = []
        after = {"StartAfter": prefix + start} if start else {}
        with self._trouble():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket.name, Prefix=prefix + under, **after
            )
            for page in pages:
                for each in page.get("Contents", []):
                    name = each["Key"].removeprefix(prefix)
                    if end and name >= end:
                        return found
                    found.append(Entry(name, each["Size"], each["LastModified"].timestamp()))
        return found

    def read(self, name: str) -> bytes:
        """The whole object."""
        with self._trouble(name):
            said = self._client.get_object(Bucket=self._bucket.name, Key=self._bucket.prefix + name)
            content: bytes = said["Body"].read()
        return content

    def local(self, entries: Sequence[Entry], seconds: float = LONGEST_S) -> AbstractContextManager[list[Path]]:
        """Copies."""
        return self._cache.hold(entries, seconds)

    def make_folder(self, folder: str) -> None:
        """A bucket has none."""

    def put(self, waiting: Path, name: str) -> None:
        """One request, so that nobody sees half of it; then nothing is left here."""
        with waiting.open("rb") as opened, self._trouble():
            self._client.put_object(Bucket=self._bucket.name, Key=self._bucket.prefix + name, Body=opened)
        waiting.unlink()

    def delete(self, names: Sequence[str]) -> None:
        """Many in one request."""
        for start in range(0, len(names), MOST_DELETED):
            some = names[start : start + MOST_DELETED]
            keys = [{"Key": self._bucket.prefix + name} for name in some]
            with self._trouble():
                said = self._client.delete_objects(Bucket=self._bucket.name, Delete={"Objects": keys, "Quiet": True})
            if said.get("Errors"):
                raise Unavailable(f"{self} did not delete files: {said['Errors'][0].get('Code', 'no reason')}.")
        self._cache.forget(names)

    def remove(self, folder: str, groups: Sequence[Sequence[str]]) -> None:  # noqa: ARG002 - the port
        """One group after the other: what a file stands for never counts again."""
        for names in groups:
            self.delete(names)

    @contextmanager
    def only_one(self) -> Iterator[bool]:
        """On this machine; two machines may do the same, and then one has worked for nothing."""
        self._bucket.folder.mkdir(parents=True, exist_ok=True)
        with locked_by_one(self._bucket.folder / "tidying.lock") as mine:
            yield mine

    def __str__(self) -> str:
        return f"The bucket {self._bucket.name} of the log store"

    def _fetch(self, entry: Entry, target: BinaryIO) -> None:
        with self._trouble(entry.name):
            said = self._client.get_object(Bucket=self._bucket.name, Key=self._bucket.prefix + entry.name)
            shutil.copyfileobj(said["Body"], target, 2**20)
        if target.tell() != entry.size:
            raise Unavailable(f"{self} sent {target.tell()} of {entry.size} bytes of a file: ask again.")

    @property
    def _client(self) -> Any:
        with self._making:
            if self._made is None:
                import boto3
                from botocore.config import Config

                config = Config(
                    connect_timeout=CONNECT_S,
                    read_timeout=READ_S,
                    retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
                    max_pool_connections=32,
                    # Other makers' stores know no checksums behind the content.
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    s3={"addressing_style": "path" if self._bucket.endpoint else "auto"},
                )
                self._made = boto3.Session().client(
                    "s3", region_name=self._bucket.region, endpoint_url=self._bucket.endpoint, config=config
                )
            return self._made

    @contextmanager
    def _trouble(self, name: str = "") -> Iterator[None]:
        """Errors of boto3 as those of the store: FileNotFoundError for an object that is gone, else Unavailable."""
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ClientError as error:
            said = error.response.get("Error", {})
            if name and said.get("Code") in GONE:
                raise FileNotFoundError(f"{name} is gone") from error
            # Its sentence names who we are, which is not for everybody who asks.
            raise Unavailable(f"{self} refuses it: {said.get('Code', 'without a reason')}.") from error
        except NoCredentialsError as error:
            raise Unavailable(
                f"{self} asks who we are: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the machine a role."
            ) from error
        except (BotoCoreError, HTTPError) as error:
            raise Unavailable(f"{self} cannot be reached: {type(error).__name__}.") from error
