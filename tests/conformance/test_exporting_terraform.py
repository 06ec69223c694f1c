"""A load balancer at AWS leaves as a folder that terraform itself takes, without a backend of ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.core.secrets.sealing import seal
from apps.definitions.models import LoadBalancer
from apps.definitions.services import apply_document
from apps.drivers.infra.mirrors import mirror
from apps.exporting.contract import Export
from apps.exporting.folders import write_folder
from apps.exporting.services import export, export_by_request
from apps.exporting.terraform import MAIN, STATE, VALUES
from apps.fleet.models import Stack
from apps.stacks.models import StateVersion
from tests.apps.test_exporting import CERTIFICATE
from tests.terraform_providers import provides

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.processes,
    pytest.mark.exhaustive,
    pytest.mark.slow(reason="Node.js synthesizes in a process of its own"),
]
NETWORK = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]}
OBJECTS: list[dict[str, Any]] = [
    {"kind": "Region", "name": "east", "spec": {"title": "East"}},
    {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:AWS_PROD"}},
    {"kind": "Stack", "name": "aws-eu", "spec": {
        "cloud_account": "prod", "cloud_region": "eu-central-1", "region": "east", "network": NETWORK,
    }},
    CERTIFICATE,
    {"kind": "Pool", "name": "shop", "spec": {"backends": [
        {"region": "east", "servers": [{"name": "one", "address": "10.0.0.1", "port": 80}]},
    ]}},
    *({"kind": "LoadBalancer", "name": name, "spec": {"stacks": ["aws-eu"], "listeners": [
        {"name": "web", "protocol": "http", "port": 80},
        {"name": "secure", "protocol": "https", "port": 443, "certificates": ["shop"]},
    ]}} for name in ("front", "other")),
    *({"kind": "Route", "name": name, "spec": {
        "load_balancer": name, "hostname": f"{name}.example", "action": {"pools": [{"pool": "shop"}]},
    }} for name in ("front", "other")),
]  # fmt: skip


@pytest.fixture
def balancer(operator: Actor) -> LoadBalancer:
    """A load balancer of a stack, whose state has more than it."""
    apply_document(actor=operator, objects=OBJECTS)
    row = LoadBalancer.objects.get(name="front")
    resources = [
        {"mode": "managed", "type": "aws_lb", "name": f"lb_{each.pk}", "instances": []}
        for each in LoadBalancer.objects.all()
    ]
    state = {"version": 4, "serial": 3, "lineage": "x", "outputs": {"a": 1}, "resources": resources}
    content = seal(zlib.compress(json.dumps(state).encode()))
    facts: dict[str, Any] = {"number": 1, "serial": 3, "md5": "", "content": content, "written_by": "x"}
    StateVersion.objects.create(stack=Stack.objects.get(name="aws-eu"), **facts)
    return row


def main_of(found: Export) -> dict[str, Any]:
    """What terraform reads first."""
    made: dict[str, Any] = json.loads(found.files[MAIN])
    return made


def test_it_is_this_load_balancer_alone_with_providers_and_no_backend_of_ours(
    operator: Actor, balancer: LoadBalancer
) -> None:
    found = export(operator, balancer, "terraform", with_keys=True)
    made = main_of(found)
    assert list(made["resource"]["aws_lb"]) == [f"lb_{balancer.pk}"]
    assert "backend" not in made["terraform"]
    assert made["terraform"]["required_providers"]["aws"]["source"] == "hashicorp/aws"
    assert found.private == {VALUES, STATE}
    assert "PRIVATE KEY" in found.files[VALUES].decode()
    kept = json.loads(found.files[STATE])
    assert [each["name"] for each in kept["resources"]] == [f"lb_{balancer.pk}"]
    # To destroy it in this folder would take it from the other load balancer.
    assert "destroy none of them here: operator/shop." in "\n".join(map(str, found.not_said))
    asked = export_by_request(operator, "front", "terraform")
    assert set(asked.files) == {"README.md", MAIN}
    assert "terraform.tfvars.json" in asked.files["README.md"].decode()


@pytest.mark.skipif(not provides("hashicorp/aws"), reason="NOT TESTED: no mirror holds hashicorp/aws")
@pytest.mark.parametrize("spoilt", [False, True], ids=["whole", "with a word that is none"])
def test_terraform_itself_takes_the_folder(
    operator: Actor, balancer: LoadBalancer, tmp_path: Path, spoilt: bool
) -> None:
    write_folder(export(operator, balancer, "terraform", with_keys=True), tmp_path / "out")
    if spoilt:
        text = (tmp_path / "out" / MAIN).read_text()
        (tmp_path / "out" / MAIN).write_text(text.replace('"subnets"', '"subsets"'))
    config = tmp_path / "terraformrc"
    config.write_text(f'provider_installation {{\n  filesystem_mirror {{ path = "{mirror()}" }}\n}}\n')
    settings = os.environ | {"TF_CLI_CONFIG_FILE": str(config), "CHECKPOINT_DISABLE": "1"}
    program = shutil.which("terraform") or "terraform"
    for words in (["init", "-input=false"], ["validate"]):
        done = subprocess.run(
            [program, *words], cwd=tmp_path / "out", env=settings, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            break
    assert (done.returncode != 0) == spoilt, done.stdout + done.stderr
