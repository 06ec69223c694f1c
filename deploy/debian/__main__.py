"""Builds the packages: `python -m deploy.debian` writes spillway-agent and, per release, spillway to var/debian.

The Python packages of the console are those of the lock, by their hashes, for the Python of each release.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path

from apps.agent import VERSION
from deploy.console_tree import EXTRAS, ROOT, stage
from deploy.pack_agent import pack

HERE = Path(__file__).resolve().parent
PYTHON_OF = {"12": "3.11", "13": "3.13"}
LIBRARY = Path("usr/lib/spillway")
UNITS = Path("lib/systemd/system")  # where debhelper looks for them; `rules` moves them below /usr


def version_now() -> str:
    """Of the commit: later ones sort behind earlier ones, all of them before the release of that number."""
    command = ["git", "log", "-1", "--format=%cd.%h", "--date=format:%Y%m%d%H%M%S"]
    seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"{VERSION}~{seen.stdout.strip()}" if seen.returncode == 0 else VERSION


def console(root: Path, python: str, extras: Sequence[str]) -> None:
    """What the package spillway installs."""
    library = root / LIBRARY
    stage(library, python, extras)
    (library / "venv" / "bin").mkdir()
    (library / "venv" / "bin" / "python3").symlink_to("/usr/bin/python3")
    (library / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    shutil.copy(HERE / "packaged.env", library)
    _put(HERE / "spillway-manage", root / "usr/bin/spillway-manage", 0o755)
    (root / "usr/bin/spillway-admin").symlink_to("spillway-manage")
    _put(ROOT / "deploy/console/haproxy.cfg", root / "etc/spillway/haproxy.cfg")
    _put(ROOT / "deploy/systemd/environment.example", root / "usr/share/spillway/environment.example")
    for unit in (ROOT / "deploy" / "systemd").glob("spillway*"):
        if unit.name != "spillway-agent.service":
            _put(unit, root / UNITS / unit.name)


def agent(root: Path) -> None:
    """What the package spillway-agent installs."""
    (root / "usr/bin").mkdir(parents=True)
    (root / "etc/spillway").mkdir(parents=True)  # where its settings and certificates are put
    pack(root / "usr/bin/spillway-agent", interpreter="/usr/bin/python3")
    (root / "usr/bin/spillway-agent").chmod(0o755)
    _put(ROOT / "deploy/systemd/spillway-agent.service", root / UNITS / "spillway-agent.service")
    _put(HERE / "haproxy-distribution.conf", root / UNITS / "haproxy.service.d/spillway-agent.conf")


def _put(source: Path, target: Path, mode: int = 0o644) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(mode)


def build(package: str, version: str, out: Path, root: Path, python: str = "") -> None:
    """One package from its staged root, by debhelper."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE, Path(folder) / "debian", ignore=shutil.ignore_patterns("__pycache__", "*.py"))
        (Path(folder) / "debian" / "changelog").write_text(
            f"spillway ({version}) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n"
            f" -- The authors of Spillway <spillway@localhost>  {formatdate()}\n"
        )
        words = {"PACKAGE": package, "VERSION": version, "STAGE": root, "OUT": out, "PYTHON": python}
        command = ["make", "-s", "-f", "debian/rules", "binary", *(f"{key}={value}" for key, value in words.items())]
        subprocess.run(command, cwd=folder, check=True, env=os.environ | {"MAKEFLAGS": ""})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", nargs="*", default=list(PYTHON_OF), choices=PYTHON_OF, help="releases of Debian")
    parser.add_argument("--extras", nargs="*", default=[], choices=EXTRAS, help="for stacks in these clouds")
    parser.add_argument("--version", default=version_now())
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "debian")
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        agent(Path(folder) / "agent")
        build("spillway-agent", options.version, out, Path(folder) / "agent")
        for release in options.release:
            python, root = PYTHON_OF[release], Path(folder) / release
            console(root, python, options.extras)
            later = python.partition(".")[0] + f".{int(python.partition('.')[2]) + 1}"
            needed = f"python3 (>= {python}), python3 (<< {later})"
            build("spillway", f"{options.version}+deb{release}", out, root, needed)
    for built in sorted(out.glob(f"*_{options.version}*.deb")):
        print(built)


if __name__ == "__main__":
    main()
