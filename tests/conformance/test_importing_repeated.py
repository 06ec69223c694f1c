"""The same file gives the same documents, in the same order, in whatever process it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]
READ = """
import sys
from apps.importing.formats import FORMATS
from apps.importing.options import ImportOptions
print(FORMATS[sys.argv[1]].read(open(sys.argv[2]).read(), {}, ImportOptions()).documents)
"""


@pytest.mark.slow(reason="two processes, each of which loads the importer")
@pytest.mark.parametrize(
    ("form", "file"),
    [
        ("caddy", "caddy/house.json"),
        ("haproxy", "corpus/04-hosts-by-map.cfg"),
        ("nginx", "nginx/14-hosts-and-ports.conf"),
    ],
)
def test_a_file_that_is_read_by_two_processes_gives_equal_documents(form: str, file: str) -> None:
    path = str(ROOT / "tests" / "import" / file)
    said = [
        subprocess.run(
            [sys.executable, "-c", READ, form, path],
            cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1]
    assert "Route" in said[0]
