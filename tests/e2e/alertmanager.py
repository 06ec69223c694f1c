"""A real Alertmanager for tests, from Debian's package."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.ready import call
from tests.e2e.demo import until
from tests.e2e.name_servers import LOUDLY
from tests.ports import spare_port

CONFIG = "route: {receiver: nobody, group_wait: 0s}\nreceivers: [{name: nobody}]\n"


@dataclass(frozen=True)
class Alertmanager:
    """One that runs."""

    url: str

    def alerts(self, *, active: bool = True) -> list[dict[str, Any]]:
        """What it holds to be firing, as its own API says."""
        status, text = call(f"{self.url}/api/v2/alerts?active={str(active).lower()}")
        assert status == 200, text
        found: list[dict[str, Any]] = json.loads(text)
        return found


@contextmanager
def running_alertmanager(folder: Path) -> Iterator[Alertmanager]:
    """Alertmanager alone, without a cluster."""
    if shutil.which("prometheus-alertmanager") is None:
        pytest.skip(LOUDLY.format("prometheus-alertmanager"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yml").write_text(CONFIG)
    found = Alertmanager(f"http://127.0.0.1:{spare_port()}")
    line = ["prometheus-alertmanager", f"--config.file={folder / 'config.yml'}", f"--storage.path={folder / 'data'}"]
    line += [f"--web.listen-address={found.url.removeprefix('http://')}", "--cluster.listen-address="]
    with (folder / "log").open("wb") as log, subprocess.Popen(line, stdout=log, stderr=log) as process:
        try:
            assert until(lambda: call(f"{found.url}/-/ready")[0] == 200, 30), (folder / "log").read_text()
            yield found
        finally:
            process.terminate()
