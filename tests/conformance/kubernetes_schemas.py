"""What Kubernetes accepts: the definitions of its API, out of its Go module, as a schema without unknown fields."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golang import go

RELEASE = "v1.35.4"
MODULE = f"k8s.io/kubernetes@{RELEASE}"
PATIENCE_S = 300
_PREFIX = "#/definitions/"
# The API takes numbers here as well, which its description calls texts.
_LOOSE = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}


def definitions() -> Mapping[str, Any] | str:
    """Every kind and its parts, as the release describes them; or why they cannot be had."""
    with tempfile.TemporaryDirectory() as empty:
        done = go("mod", "download", "-json", MODULE, cwd=empty, patience_s=PATIENCE_S)
    if isinstance(done, str):
        return f"Kubernetes was not downloaded. {done}"
    archive = json.loads(done.stdout or "{}").get("Zip", "")
    if not archive:
        return "Kubernetes cannot be downloaded from here."
    with zipfile.ZipFile(Path(archive)) as files:
        found: dict[str, Any] = json.loads(files.read(f"{MODULE}/api/openapi-spec/swagger.json"))["definitions"]
    return {name: _LOOSE.get(name) or _strict(each) for name, each in found.items()}


def _strict(definition: dict[str, Any]) -> dict[str, Any]:
    """With its fields and no others."""
    return {"additionalProperties": False, **definition} if "properties" in definition else definition


def schema_of(document: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Of an object, by what it says of itself. Raises KeyError for a kind that this release does not have."""
    group, _, version = str(document["apiVersion"]).rpartition("/")
    wanted = {"group": group, "version": version, "kind": document["kind"]}
    for name, each in known.items():
        if wanted in each.get("x-kubernetes-group-version-kind", ()):
            return {"$ref": _PREFIX + name, "definitions": known}
    raise KeyError(f"{document['apiVersion']} {document['kind']}")
