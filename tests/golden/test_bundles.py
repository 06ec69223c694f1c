"""Golden files: each folder is a case, `snapshot.json` goes in, `expected/` comes out; a new case is a new folder.

`UPDATE_GOLDEN=1 pytest tests/golden` writes what the compiler says now; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from apps.compiler.codec import snapshot_from_json, snapshot_to_json
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import Finding

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/snapshot.json"))


def _compiled(case: Path) -> dict[str, bytes]:
    """All files of the bundle without the manifest, and the findings as a file of their own."""
    compilation = compile_snapshot(snapshot_from_json(json.loads((case / "snapshot.json").read_text())))
    findings = "".join(map(_line, (*compilation.left_out, *compilation.warnings)))
    files = {path: content for path, content in compilation.output.files.items() if path != "manifest.json"}
    return {**files, "findings.txt": findings.encode()}


def _line(finding: Finding) -> str:
    return f"{finding.object_id} {finding.field or '-'} {finding.code}: {finding.message}\n"


def _update(case: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(case / "expected", ignore_errors=True)
    for path, content in files.items():
        (case / "expected" / path).parent.mkdir(parents=True, exist_ok=True)
        (case / "expected" / path).write_bytes(content)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_snapshot_compiles_to_exactly_these_files(case: Path) -> None:
    files = _compiled(case)
    if os.environ.get("UPDATE_GOLDEN"):
        _update(case, files)
    folder = case / "expected"
    expected = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path: content.decode() for path, content in files.items()} == {
        path: content.decode() for path, content in expected.items()
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_snapshot_survives_being_stored(case: Path) -> None:
    document = json.loads((case / "snapshot.json").read_text())
    assert snapshot_to_json(snapshot_from_json(document)) == document
