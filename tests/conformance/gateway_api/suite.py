"""The names of the cases in the project's own conformance suite, as its Go module has them."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.gateway_api.cases import KINDS
from tests.golang import go

RELEASE = "v1.7.0"
MODULE = f"sigs.k8s.io/gateway-api/conformance@{RELEASE}"
# What every case of these kinds needs.
CORE = frozenset({"Gateway", "ReferenceGrant", *KINDS})
PATIENCE_S = 60
_CASE = re.compile(r'ShortName:\s*"(\w+)"(.*?)\bTest:', re.DOTALL)
_FEATURE = re.compile(r"features\.Support(\w+)")


def extended_features() -> Mapping[str, tuple[str, ...]] | str:
    """Each case of our kinds with the features beyond the core that it needs; or why that cannot be said."""
    found = archive()
    return found if isinstance(found, str) else features_in(found)


def archive() -> Path | str:
    """The archive of the project's module, or why it is not there."""
    with tempfile.TemporaryDirectory() as empty:
        done = go("mod", "download", "-json", MODULE, cwd=empty, patience_s=PATIENCE_S)
    if isinstance(done, str):
        return f"The project's module was not downloaded. {done}"
    # A Go that is older than the module refuses to build it; what it downloaded is there all the same.
    found = json.loads(done.stdout or "{}").get("Zip", "")
    return Path(found) if found else "The project's module cannot be downloaded from here."


def manifests_in(found: Path) -> tuple[str, dict[str, str]]:
    """What all cases rely on, and the manifests of each case, as YAML."""
    cases: dict[str, str] = {}
    with zipfile.ZipFile(found) as files:
        names = set(files.namelist())
        for name in names:
            case = _CASE.search(files.read(name).decode()) if name.endswith(".go") else None
            manifest = f"{name.removesuffix('.go')}.yaml"
            if case and manifest in names:
                cases[case[1]] = files.read(manifest).decode()
        return files.read(f"{MODULE}/base/manifests.yaml").decode(), cases


def features_in(archive: Path) -> dict[str, tuple[str, ...]]:
    """The cases of our kinds in the module's archive."""
    prefixes = tuple(f"{MODULE}/tests/{kind.lower()}" for kind in KINDS)
    found: dict[str, tuple[str, ...]] = {}
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            if name.startswith(prefixes) and name.endswith(".go"):
                for case, said in _CASE.findall(files.read(name).decode()):
                    found[case] = tuple(sorted({*_FEATURE.findall(said)} - CORE))
    return found
