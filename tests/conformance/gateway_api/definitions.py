"""What a cluster accepts of the Gateway API: the schemas of its definitions, out of its Go module."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.gateway_api.suite import RELEASE
from tests.golang import go

MODULE = f"sigs.k8s.io/gateway-api@{RELEASE}"
FOLDER = f"{MODULE}/config/crd/standard/"
PATIENCE_S = 120


def schemas() -> Mapping[tuple[str, str], Any] | str:
    """A schema for each version (`gateway.networking.k8s.io/v1`) and kind; or why they cannot be had."""
    with tempfile.TemporaryDirectory() as empty:
        done = go("mod", "download", "-json", MODULE, cwd=empty, patience_s=PATIENCE_S)
    if isinstance(done, str):
        return f"The project's module was not downloaded. {done}"
    archive = json.loads(done.stdout or "{}").get("Zip", "")
    if not archive:
        return "The project's module cannot be downloaded from here."
    found: dict[tuple[str, str], Any] = {}
    with zipfile.ZipFile(Path(archive)) as files:
        for name in files.namelist():
            if name.startswith(FOLDER) and name.endswith(".yaml"):
                for each in yaml.safe_load_all(files.read(name)):
                    found |= _versions(each or {})
    return found


def _versions(definition: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    if definition.get("kind") != "CustomResourceDefinition":
        return {}
    spec = definition["spec"]
    return {
        (f"{spec['group']}/{each['name']}", spec["names"]["kind"]): _strict(each["schema"]["openAPIV3Schema"])
        for each in spec["versions"] if each["served"]
    }  # fmt: skip


def _strict(schema: Any) -> Any:
    """With its fields and no others, at every depth; what the cluster itself checks of `metadata` is left to it."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _strict(each) for name, each in schema.items()}
    return {"additionalProperties": False, **found} if isinstance(found.get("properties"), dict) else found
