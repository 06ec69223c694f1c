"""Packed: puts `apps/agent` into one .pyz that runs with nothing but python3 and haproxy."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def pack(target: Path, interpreter: str = "/usr/bin/env python3") -> None:
    """Write the archive; the folder structure stays, so that imports read the same packed and unpacked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        (stage / "apps").mkdir()
        shutil.copy(ROOT / "apps" / "__init__.py", stage / "apps")
        shutil.copytree(ROOT / "apps" / "agent", stage / "apps" / "agent", ignore=shutil.ignore_patterns("__pycache__"))
        (stage / "__main__.py").write_text("import sys\nfrom apps.agent.__main__ import main\nsys.exit(main())\n")
        zipapp.create_archive(stage, target, interpreter=interpreter, compressed=True)


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
