"""A load balancer leaves as a plain haproxy.cfg: HAProxy takes it, and nothing of it needs an agent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from apps.compiler.codec import snapshot_from_json
from apps.compiler.portability.standalone import NotAlone, standalone
from tests.golden.test_bundles import CASES

pytestmark = pytest.mark.processes


def exported(case: Path, folder: Path) -> int:
    """How many load balancers of a golden document HAProxy takes by themselves, without a warning."""
    snapshot = snapshot_from_json(json.loads((case / "snapshot.json").read_text()))
    for each in snapshot.load_balancers:
        to = folder / each.id
        for path, content in standalone(snapshot, each.id).output.items():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes(content)
        text = (to / "haproxy.cfg").read_text()
        assert "SPILLWAY" not in text
        command = ["haproxy", "-c", "-f", "haproxy.cfg"]
        checked = subprocess.run(command, cwd=to, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
    return len(snapshot.load_balancers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_haproxy_takes_every_load_balancer_of_the_golden_documents_by_itself(case: Path, tmp_path: Path) -> None:
    assert exported(case, tmp_path) >= 0


def test_one_that_the_fleet_does_not_run_is_refused() -> None:
    snapshot = snapshot_from_json(json.loads((CASES[0] / "snapshot.json").read_text()))
    with pytest.raises(NotAlone):
        standalone(snapshot, "lb-999")
