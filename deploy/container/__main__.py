"""Builds the image: `python -m deploy.container` stages var/container and calls podman, or what --with names.

The folder holds the program, its locked packages and a list of all of them (CycloneDX); no settings and no keys.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from deploy.bill_of_materials import write_bill
from deploy.console_tree import EXTRAS, ROOT, stage
from deploy.pack_agent import pack

HERE = Path(__file__).resolve().parent
STAGE = ROOT / "var" / "container"
# What is read by debuggers and editors only.
NOT_READ = ("*.pyi", "*.pyx", "*.map")
# Their libraries are as the compiler wrote them; others were patched, and would be broken.
STRIPPED = ("cryptography", "httptools", "uvloop", "yaml")


def stage_image(extras: list[str]) -> None:
    """What the Containerfile copies."""
    library = STAGE / "usr" / "lib" / "spillway"
    shutil.rmtree(STAGE, ignore_errors=True)
    stage(library, "3.11", extras)
    lighten(library)
    (library / "venv" / "bin").mkdir()
    write_bill(library / "sbom.cdx.json", extras)
    shutil.copy(HERE / "run", library)
    (STAGE / "usr" / "bin").mkdir()
    pack(STAGE / "usr" / "bin" / "spillway-agent")
    (STAGE / "usr" / "bin" / "spillway-agent").chmod(0o755)
    (STAGE / "etc" / "spillway").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "console" / "haproxy.cfg", STAGE / "etc" / "spillway")


def lighten(library: Path) -> None:
    """Take 20 MB out of it."""
    for pattern in NOT_READ:
        for path in library.rglob(pattern):
            path.unlink()
    packages = next(library.glob("venv/lib/python*/site-packages"))
    libraries = [str(path) for name in STRIPPED for path in (packages / name).rglob("*.so")]
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)


def main() -> None:
    """The command line; further words go to the builder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with", dest="builder", default="podman", help="podman, docker or buildah")
    parser.add_argument("--tag", default="localhost/spillway:latest")
    parser.add_argument("--extras", nargs="*", default=[], choices=EXTRAS, help="for stacks in these clouds")
    options, words = parser.parse_known_args()
    stage_image(options.extras)
    command = [options.builder, "build", *words, "-t", options.tag, "-f", str(HERE / "Containerfile"), str(STAGE)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
