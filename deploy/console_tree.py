"""What runs a console, in one folder: the program, its locked packages, collected static files and the documents.

`python -m deploy.console_tree DIR --python 3.13` needs no Python 3.13: wheels are chosen for it, by the hashes of the
locks. Packages for Debian and the container image are made of this folder.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ("apps", "controlplane", "frontend", "manage.py", "LICENSE")
NOT_RUN = ("__pycache__", "node_modules", "*.in", "requirements.txt", "package*.json", "install.py")
EXTRAS = ("aws", "google")
WHEELS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")


def stage(target: Path, python: str, extras: Sequence[str] = ()) -> None:
    """Write the folder anew; `python` is such as 3.13, `extras` are of EXTRAS."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    target.chmod(0o755)
    for name in PROGRAM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns(*NOT_RUN))
        else:
            shutil.copy(source, target)
    documents = ROOT / "var" / "documents"
    if (documents / "docs" / "index.html").exists():
        shutil.copytree(documents, target / "var" / "documents")
    _install(target / "venv" / "lib" / f"python{python}" / "site-packages", python, extras)
    _collect(target)


def _install(packages: Path, python: str, extras: Sequence[str]) -> None:
    locks = ["requirements.txt", *(f"requirements-{extra}.txt" for extra in extras)]
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
    command += ["--require-hashes", "--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    for wheel in WHEELS:
        command += ["--platform", f"{wheel}_{platform.machine()}"]
    for lock in locks:
        command += ["-r", str(ROOT / lock)]
    subprocess.run([*command, "--target", str(packages)], check=True)
    shutil.rmtree(packages / "bin", ignore_errors=True)  # scripts that name the Python of this machine
    # 35 MB of translations, and the 3 000 folders in which they were; pages have one language.
    for catalogue in (*packages.rglob("*.po"), *packages.rglob("*.mo")):
        catalogue.unlink()
        for folder in (catalogue.parent, catalogue.parent.parent):
            if not any(folder.iterdir()):
                folder.rmdir()


def _collect(target: Path) -> None:
    """By this machine's Python: static files are the same for each."""
    ours = {"SPILLWAY_STATIC_ROOT": str(target / "static"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
    subprocess.run(command, cwd=target, env=os.environ | ours, check=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--python", default="3.11", help="the Python that will run it, such as 3.13")
    parser.add_argument("--extras", nargs="*", default=[], choices=EXTRAS, help="for stacks in these clouds")
    options = parser.parse_args()
    stage(options.target.resolve(), options.python, options.extras)


if __name__ == "__main__":
    main()
