"""Bench of exports: processor time, memory and size of each format with many routes, on SQLite of its own.

`python -m tests.bench.exporting [--routes 100000]`: each format is written in a process of its own, whose memory
is what it held at most, Django included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.pages import FEW, FEW_ACCOUNTS, TUTORIAL, multiply

FORMATS = ("haproxy", "gateway-api", "documents")
FLEET = "europe-west1"


def set_up(directory: str) -> None:
    """Django with a database in the directory."""
    os.environ |= {"SPILLWAY_VAR": directory, "SPILLWAY_LOG_LEVEL": "ERROR"}
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    import django

    django.setup()


def fill(routes: int) -> None:
    """The tutorial, and so many routes."""
    from django.core.management import call_command

    from apps.accounts.bootstrap import found_operator

    call_command("migrate", verbosity=0)
    found_operator(username="bench", password="a password of the bench")
    call_command("apply", str(TUTORIAL), verbosity=0)
    call_command("seed", routes=FEW, accounts=FEW_ACCOUNTS, verbosity=0)
    multiply(routes)


def measure(form: str) -> dict[str, float]:
    """One export, as the command makes it."""
    from apps.accounts.actors import platform_actor
    from apps.definitions.models import LoadBalancer
    from apps.exporting.services import export

    balancer = LoadBalancer.objects.get(name="front")
    within = "" if form == "documents" else FLEET
    began = time.process_time()
    found = export(platform_actor(), balancer, form, within=within, with_keys=True)
    spent = time.process_time() - began
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": spent, "mb": held, "files_mb": sum(map(len, found.files.values())) / 1e6}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=20_000)
    parser.add_argument("--one", nargs=2, metavar=("FORMAT", "DIRECTORY"), help="for the processes of this bench")
    wanted = parser.parse_args()
    if wanted.one:
        set_up(wanted.one[1])
        print(json.dumps(measure(wanted.one[0])))
        return 0
    found: dict[str, Any] = {}
    print(f"{'format':12}{'s':>8}{'MB':>8}{'files, MB':>11}")
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory:
        set_up(directory)
        fill(wanted.routes)
        for form in FORMATS:
            words = [sys.executable, "-m", "tests.bench.exporting", "--one", form, directory]
            done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
            found[form] = one = json.loads(done.stdout)
            print(f"{form:12}{one['seconds']:8.1f}{one['mb']:8.0f}{one['files_mb']:11.1f}", flush=True)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
