"""What a store in memory leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OPEN = "import os, tempfile; from apps.drivers.logs.registry import open_queues; "
OPEN += "open_queues('memory://queues'); print(*os.listdir(tempfile.gettempdir()))"


def test_the_folder_of_a_store_in_memory_goes_with_its_process(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", OPEN], check=True, capture_output=True, text=True, env=environment)
    assert said.stdout.startswith("spillway-forward-")
    assert list(tmp_path.iterdir()) == []
