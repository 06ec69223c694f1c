"""Runs every bench of this folder in a process of its own, with this machine's facts; writes var/bench.json."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def names() -> list[str]:
    """Modules of this folder that have a `main()`: those named on the command line, or all."""
    found = sorted(path.stem for path in HERE.glob("[a-z]*.py") if "\ndef main() -> int:" in path.read_text())
    unknown = set(sys.argv[1:]) - set(found)
    if unknown:
        raise SystemExit(f"There is no bench {', '.join(sorted(unknown))}; there are {', '.join(found)}.")
    return sys.argv[1:] or found


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    haproxy = subprocess.run(["haproxy", "-v"], capture_output=True, text=True, check=False).stdout.split()
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "cpu": model[0].partition(":")[2].strip() if model else platform.machine(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "haproxy": haproxy[2] if len(haproxy) > 2 else "",
    }


def measure(name: str) -> tuple[int, Any]:
    """Exit code and numbers of one bench; the numbers are its last line of output."""
    print(f"\n== {name}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{name}"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    *table, last = done.stdout.rstrip().splitlines() or [""]
    print("\n".join(table), flush=True)
    try:
        return done.returncode, json.loads(last)
    except ValueError:
        return done.returncode or 1, last


def main_of_all() -> int:
    """Run, collect, write; 1 when a bench missed a goal."""
    facts = machine()
    print("  ".join(f"{name} {value}" for name, value in facts.items()))
    missed, results = [], {}
    for name in names():
        code, results[name] = measure(name)
        if code != 0:
            missed.append(name)
    target = Path(os.environ.get("SPILLWAY_VAR", ROOT / "var")) / "bench.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"machine": facts, "results": results}, indent=1) + "\n")
    print(f"\nGoals missed: {', '.join(missed) or 'none'}. Numbers: {target}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main_of_all())
