"""The later releases of HAProxy that are asked: they come with the hashes of the lock, or not at all."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import haproxy_releases
from tests.haproxy_releases import APT_HELPER, PACKAGES, Unobtainable, binary_of, locked, main

needs_apt = pytest.mark.skipif(not Path(APT_HELPER).exists(), reason="packages come with apt")
SAYS = "#!/bin/sh\n" + 'shift 3\necho "started: $*"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror that is a folder, with one package that holds a loader which says what it is to start."""
    tree = tmp_path / "tree"
    for path, text in {haproxy_releases.LOADER: SAYS, "usr/sbin/haproxy": ""}.items():
        (tree / path).parent.mkdir(parents=True)
        (tree / path).write_text(text)
        (tree / path).chmod(0o755)
    (tree / "DEBIAN").mkdir()
    control = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: x\n"
    (tree / "DEBIAN" / "control").write_text(control)
    subprocess.run(["dpkg-deb", "-b", str(tree), str(tmp_path / "x.deb")], check=True, capture_output=True)
    monkeypatch.setattr(haproxy_releases, "mirror_of_debian", lambda: f"file:{tmp_path}/")
    monkeypatch.setattr(haproxy_releases, "MACHINE", platform.machine())
    monkeypatch.setattr(haproxy_releases, "KEPT", tmp_path / "kept")
    return tmp_path


@needs_apt
def test_a_package_with_its_hash_is_unpacked_and_started_by_its_own_loader(folder: Path) -> None:
    digest = hashlib.sha256((folder / "x.deb").read_bytes()).hexdigest()
    program = binary_of("9.9", [("x.deb", digest)])
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stdout
    root = folder / "kept" / "9.9" / "root"
    assert said.endswith(f"{root}/usr/sbin/haproxy -v\n")
    (folder / "x.deb").unlink()
    assert binary_of("9.9", [("x.deb", digest)]) == program, "what is there is not fetched again"


@needs_apt
def test_one_with_another_hash_is_not_and_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = folder / "lock"
    lock.write_text(f"9.9 {'0' * 64} x.deb\n")
    with pytest.raises(Unobtainable, match="apt-helper"):
        binary_of("9.9", [("x.deb", "0" * 64)])
    assert list((folder / "kept").iterdir()) == []
    monkeypatch.setattr(haproxy_releases, "LOCK", lock)
    main([])
    printed = capsys.readouterr()
    assert (printed.out, "HAProxy 9.9 is not asked" in printed.err) == ("\n", True)


def test_the_lock_names_every_package_of_each_release_and_no_host() -> None:
    releases = locked()
    ((named, digest),) = releases.pop("2.8.25")
    assert f"2.8.25 {digest} {named}" == haproxy_releases.WHEEL
    assert all(version >= "3" for version in releases)
    assert len(releases) == len(haproxy_releases.SUITES)
    for files in releases.values():
        names = [Path(folder).name.partition("_")[0] for folder, _ in files]
        assert names == list(PACKAGES)
        assert all(
            re.fullmatch(r"[0-9a-f]{64}", digest) and folder.startswith("pool/main/") for folder, digest in files
        )


def test_who_has_no_apt_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert shutil.which("apt-get") is None
    with pytest.raises(Unobtainable, match="apt-get"):
        haproxy_releases.mirror_of_debian()
