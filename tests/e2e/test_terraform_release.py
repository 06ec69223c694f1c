"""The release of the Terraform provider: the same bytes each time, and what `terraform init` takes from a mirror."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from apps.accounts.bootstrap import replace_token
from apps.accounts.models import Account
from apps.fleet.models import Region
from deploy.pack_terraform_provider import NAME, PLATFORMS, SOURCE, pack
from tests.conftest import actor_of
from tests.e2e.terraform_provider import Terraform
from tests.golang import CACHE

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "use" / "terraform.md"
REGION = {"kind": "Region", "name": "eu", "spec": {"title": "EU"}}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go's modules and what it built before, where the other tests have them."""
    monkeypatch.setenv("GOMODCACHE", str(CACHE))
    monkeypatch.setenv("GOCACHE", str(CACHE.with_name("go-build")))
    monkeypatch.setenv("GOFLAGS", "-modcacherw")


def digest(path: Path) -> str:
    """As SHA256SUMS has it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_same_source_makes_the_same_zips_wherever_it_lies(tmp_path: Path) -> None:
    zips = pack(tmp_path / "release")
    assert [each.name for each in zips] == [f"{NAME}_{platform}.zip" for platform in PLATFORMS]
    lines = (tmp_path / "release" / f"{NAME}_SHA256SUMS").read_text().splitlines()
    manifest = tmp_path / "release" / f"{NAME}_manifest.json"
    assert {tuple(line.split("  ")) for line in lines} == {(digest(each), each.name) for each in (*zips, manifest)}
    assert json.loads(manifest.read_text())["metadata"]["protocol_versions"] == ["6.0"]
    copy = Path(shutil.copytree(SOURCE, tmp_path / "elsewhere" / "source"))
    (again,) = pack(tmp_path / "again", PLATFORMS[:1], copy)
    assert digest(again) == digest(zips[0])
    (copy / "kinds.json").write_text((copy / "kinds.json").read_text() + "\n")
    (other,) = pack(tmp_path / "again", PLATFORMS[:1], copy)
    assert digest(other) != digest(zips[0])


@pytest.mark.django_db(transaction=True)
def test_terraform_installs_it_from_a_mirror_as_the_page_says(
    live_server: LiveServer, live_redis: str, tmp_path: Path
) -> None:
    operator = actor_of("operator", Account.Kind.OPERATOR).account
    mirror = tmp_path / "mirror"
    pack(mirror / "registry.terraform.io" / "spillway" / "spillway", PLATFORMS[:1])
    installation = PAGE.read_text().partition("provider_installation {\n")[2].partition("\n    }\n")[0]
    assert "filesystem_mirror" in installation
    folder = Terraform(tmp_path, live_server.url, replace_token(account=operator, name="terraform"))
    folder = replace(folder, installation=installation.replace("/opt/terraform-mirror", str(mirror)))
    folder.write(REGION)
    folder.run("init")
    assert "h1:" in (tmp_path / ".terraform.lock.hcl").read_text()
    folder.apply()
    assert Region.objects.get().name == "eu"
    assert "No changes" in folder.plan()
