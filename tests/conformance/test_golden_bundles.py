"""Every golden bundle is one that HAProxy takes without a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.compiler.codec import snapshot_from_json
from apps.compiler.compile import compile_snapshot
from tests.e2e.rendered_proxy import refusal_of
from tests.golden.test_bundles import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_haproxy_accepts_every_golden_bundle_without_a_warning(case: Path, tmp_path: Path) -> None:
    snapshot = snapshot_from_json(json.loads((case / "snapshot.json").read_text()))
    assert refusal_of(compile_snapshot(snapshot).output, tmp_path) == ""
