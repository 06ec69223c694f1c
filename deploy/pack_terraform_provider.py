"""Packed: the Terraform provider as a registry or a mirror takes it, the same bytes from the same source every time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "deploy" / "terraform"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PLATFORMS = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")
NAME = f"terraform-provider-spillway_{VERSION}"
MANIFEST = {"version": 1, "metadata": {"protocol_versions": ["6.0"]}}
NO_DATE = (1980, 1, 1, 0, 0, 0)


def pack(target: Path, platforms: Sequence[str] = PLATFORMS, source: Path = SOURCE) -> list[Path]:
    """Write a zip for each platform, the manifest, and the digests of them all; returns the zips."""
    target.mkdir(parents=True, exist_ok=True)
    zips = [_zipped(target, platform, source) for platform in platforms]
    manifest = target / f"{NAME}_manifest.json"
    manifest.write_text(json.dumps(MANIFEST, indent=2) + "\n")
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in (*zips, manifest)]
    (target / f"{NAME}_SHA256SUMS").write_text("".join(sorted(sums)))
    return zips


def _zipped(target: Path, platform: str, source: Path) -> Path:
    system, processor = platform.split("_")
    settings = os.environ | {"GOOS": system, "GOARCH": processor, "CGO_ENABLED": "0"}
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w -buildid= -X main.version={VERSION}"]
    found = target / f"{NAME}_{platform}.zip"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / f"terraform-provider-spillway_v{VERSION}"
        subprocess.run(["go", "build", *flags, "-o", str(program), "."], cwd=source, env=settings, check=True)
        entry = zipfile.ZipInfo(program.name, NO_DATE)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100755 << 16
        with zipfile.ZipFile(found, "w") as archive:
            archive.writestr(entry, program.read_bytes())
    return found


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
