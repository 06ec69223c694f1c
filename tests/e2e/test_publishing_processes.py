"""Definitions reach a real etcd by a scheduler and a worker, which are killed, as etcd is, while everything changes."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.server_sources.etcd.client import read_kept
from apps.definitions.server_sources.watched import Failed
from apps.definitions.services import save_object
from apps.exporting.models import Publication
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e.installation import Installation, broker, built, wait_until
from tests.etcd import RealEtcd, real_etcd

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.skipif(shutil.which("etcd") is None, reason="NOT CHECKED: there is no program etcd"),
]
AT, LIST = "/spillway/acme/", "/spillway/acme/objects/NetworkList/"


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all tests of this module."""


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[RealEtcd]:
    with real_etcd(tmp_path) as running:
        yield running


@pytest.fixture
def installation(db: None, etcd: RealEtcd, tmp_path: Path) -> Iterator[Installation]:
    file = tmp_path / "registries.json"
    file.write_text(json.dumps({"etcd": {"prod": {"urls": list(etcd.etcd.urls), "publish": {AT: "acme"}}}}))
    with built(database_url()) as running, broker(running.redis_url):
        running.environment["SPILLWAY_REGISTRIES"] = str(file)
        for name in ("redis", "worker", "schedule"):
            running.start(name)
        try:
            yield running
        finally:
            print(*((str(row), row.error, row.conflicts) for row in Publication.objects.all()), running.logs())


def save(acme: Actor, number: int, name: str = "office") -> None:
    spec = {"entries": [{"network": f"10.{number // 256}.{number % 256}.0/24"}]}
    save_object(actor=acme, kind="NetworkList", name=name, spec=spec)


def there(etcd: RealEtcd) -> dict[str, Any]:
    """The network of each list; nothing while etcd is away."""
    try:
        kept = read_kept(etcd.etcd, LIST, 1000)
    except Failed:
        return {}
    return {
        key.removeprefix(LIST): json.loads(each.value)["spec"]["entries"][0]["network"] for key, each in kept.items()
    }


def test_a_change_is_in_etcd_soon_and_none_is_lost_whatever_dies(installation: Installation, etcd: RealEtcd) -> None:
    actor_of("operator", Account.Kind.OPERATOR)
    acme, chance = actor_of("acme", Account.Kind.CUSTOMER), random.Random(7)
    save(acme, 0)
    wait_until(lambda: there(etcd) == {"office": "10.0.0.0/24"}, "the first change is published")
    took = []
    for number in range(1, 11):
        save(acme, number)
        took.append(wait_until(lambda number=number: there(etcd) == {"office": f"10.0.{number}.0/24"}, "published"))  # type: ignore[misc]
    print(f"from the change to the key: median {statistics.median(took):.1f} s, at most {max(took):.1f} s")
    assert max(took) < 15

    for number in range(11, 51):
        save(acme, number, name=f"list-{number % 7}")
        time.sleep(chance.uniform(0, 1))
        if number % 8 == 0:
            installation.kill("worker")
            installation.start("worker")
        if number % 20 == 0:
            etcd.kill(0)
            time.sleep(1)
            etcd.start(0)
    last = {f"list-{number % 7}": f"10.0.{number}.0/24" for number in range(11, 51)} | {"office": "10.0.10.0/24"}
    wait_until(lambda: there(etcd) == last, "everything is published", 120)
    kept = read_kept(etcd.etcd, AT, 1000)
    revision = kept.pop(f"{AT}revision")
    assert json.loads(revision.value)["objects"] == len(kept)
    assert max(each.revision for each in kept.values()) <= revision.revision
    assert Publication.objects.get().conflicts == []
