"""Definitions that are published in a real etcd: fixtures of both files of tests, and how to look at what is there."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.audit import chain
from apps.definitions.server_sources.etcd.client import Etcd, Kept, read_kept
from apps.definitions.services import save_object
from apps.exporting.models import Publication
from apps.exporting.publishing import services, showing
from tests.etcd import RealEtcd, real_etcd

AT = "/spillway/acme/"
LIST = "objects/NetworkList/office"


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[RealEtcd]:
    with real_etcd(tmp_path) as running:
        yield running


@pytest.fixture
def acme(acme: Actor, tutorial_env: Actor) -> Actor:
    return acme


@pytest.fixture
def allow(settings: Settings, tmp_path: Path) -> Callable[..., None]:
    """Write the operator's file: whose definitions go where."""

    def write(etcd: Etcd, publish: dict[str, Any]) -> None:
        written = tmp_path / "registries.json"
        written.write_text(json.dumps({"etcd": {"prod": {"urls": list(etcd.urls), "publish": publish}}}))
        settings.REGISTRIES = str(written)

    return write


@pytest.fixture
def sink(etcd: RealEtcd, acme: Actor, allow: Callable[..., None]) -> RealEtcd:
    """Definitions of acme are published."""
    allow(etcd.etcd, {AT: "acme"})
    return etcd


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def look() -> Publication:
    """As the sweep and a worker do, at once; how far it came."""
    Publication.objects.update(next_at=None)
    services.publish_in_turns()
    return Publication.objects.get()


def link() -> None:
    """As the scheduler does each second."""
    while chain.link_pending():
        continue


def give_up(actor: Actor, row: Publication) -> None:
    """As who looked at the page says it."""
    seen = showing.conflict_of(row.conflicts)
    services.overwrite(actor=actor, publication_id=row.pk, conflict=seen, reason="a test")


def kept(etcd: RealEtcd, prefix: str = AT) -> dict[str, Kept]:
    return {key.removeprefix(prefix): each for key, each in read_kept(etcd.etcd, prefix, 10_000).items()}


def said(etcd: RealEtcd, key: str = "revision") -> Any:
    return json.loads(kept(etcd)[key].value)


def save_list(actor: Actor, *networks: str, name: str = "office") -> None:
    entries = [{"network": network} for network in networks]
    save_object(actor=actor, kind="NetworkList", name=name, spec={"entries": entries})


def networks(etcd: RealEtcd) -> list[str]:
    return [each["network"] for each in said(etcd, LIST)["spec"]["entries"]]


def is_whole(etcd: RealEtcd) -> bool:
    """The rule for readers: no object is newer than `revision`, there are as many as it says, nothing is on its way."""
    there = kept(etcd)
    revision = there.pop("revision")
    newest = max((each.revision for each in there.values()), default=0)
    return newest <= revision.revision and len(there) == json.loads(revision.value)["objects"]


def read_as_documented(etcd: RealEtcd) -> list[str]:
    """The keys of the objects as of the revision of etcd at which `revision` was written last (docs/use/export.md)."""
    asked = {"key": in_base64(f"{AT}objects/"), "range_end": in_base64(f"{AT}objects0"), "keys_only": True}
    rows = etcd.call("/v3/kv/range", **asked, revision=str(kept(etcd)["revision"].revision)).get("kvs") or []
    return [base64.b64decode(row["key"]).decode().removeprefix(AT) for row in rows]
