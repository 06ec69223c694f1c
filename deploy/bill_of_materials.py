"""What an installation is made of, from the locks, as CycloneDX 1.5."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)")


def components(extras: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Python packages of the locks, each once, and the scripts and fonts of the pages."""
    seen = set()
    for lock in ("requirements.txt", *(f"requirements-{extra}.txt" for extra in extras)):
        for line in (ROOT / lock).read_text().splitlines():
            if (pinned := PINNED.match(line)) and pinned[1] not in seen:
                seen.add(pinned[1])
                yield _component(pinned[1], pinned[2], f"pkg:pypi/{pinned[1].lower()}@{pinned[2]}")
    packages = json.loads((ROOT / "frontend" / "package-lock.json").read_text())["packages"]
    for path, package in sorted(packages.items()):
        if name := path.rpartition("node_modules/")[2]:
            url = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
            yield _component(name, package["version"], url)


def _component(name: str, version: str, url: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def write_bill(target: Path, extras: Sequence[str] = ()) -> None:
    """Write it."""
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": list(components(extras))}
    target.write_text(json.dumps(bill, indent=1) + "\n")


if __name__ == "__main__":
    write_bill(Path(sys.argv[1]), sys.argv[2:])
