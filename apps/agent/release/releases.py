"""The files: release directories, the atomic `live` symlink, digests of what lies on disk."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.agent.bodies import Manifest, digest_of_all, read_manifest, sha256

RELEASE = re.compile(r"[0-9]+(?:-[0-9]+)?")
CONFIGS = ("haproxy.cfg", "keepalived.conf", "bird.conf")
MODES = 0o750, 0o640


class Releases:
    """`<state_dir>/releases/<generation>/…`, `<state_dir>/live` → one of them."""

    def __init__(self, state_dir: Path, group: int, replace_link: Callable[[Path, Path], None]) -> None:
        """`group` owns the files besides the agent's own user (so that a sandbox may read them); -1 keeps the default.

        `replace_link` switches the symlink.
        """
        self._state_dir = state_dir
        self._root = state_dir / "releases"
        self._group = group
        self._seen: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._replace_link = replace_link
        make_dir(self._root, group)
        for leftover in self._root.glob(".new-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    @property
    def live_link(self) -> Path:
        """The symlink that haproxy reads through."""
        return self._state_dir / "live"

    def live(self) -> Path | None:
        """The release that `live` points to, or None."""
        try:
            return self._state_dir / os.readlink(self.live_link)  # noqa: PTH115 — Path.readlink resolves nothing more
        except OSError:
            return None

    def path(self, name: str) -> Path:
        """Directory of a release by its name."""
        return self._root / name

    def prepare(self, generation: int, files: Mapping[str, bytes], base: Path | None, same: frozenset[str]) -> Path:
        """Write a release under a temporary name: `files` as given, the paths of `same` linked from `base`; fsynced."""
        draft = self._root / f".new-{generation}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        make_dir(draft, self._group)
        for folder in {Path(path).parent for path in (*files, *same)} - {Path()}:
            make_dir(draft / folder, self._group)
        for path in same:
            os.link((base or draft) / path, draft / path)
        for path, content in files.items():
            write_file(draft / path, content, self._group)
        for folder in (draft / "maps", draft / "certs", draft / "secrets", draft):
            if folder.is_dir():
                sync_dir(folder)
        return draft

    def seal(self, draft: Path, generation: int) -> Path:
        """Give a finished draft its name; a left-over of an earlier attempt makes way."""
        live = self.live()
        name, attempt = str(generation), 0
        while (self._root / name).exists():
            if live is None or live.name != name:
                shutil.rmtree(self._root / name)
                break
            attempt += 1
            name = f"{generation}-{attempt}"
        draft.rename(self._root / name)
        sync_dir(self._root)
        return self._root / name

    def point_live(self, release: Path | None) -> None:
        """Switch `live` atomically; None takes it away."""
        if release is None:
            self.live_link.unlink(missing_ok=True)
        else:
            self._replace_link(self.live_link, Path("releases") / release.name)
        sync_dir(self._state_dir)

    def prune(self, keep: int, needed: frozenset[str]) -> None:
        """Keep the `keep` newest releases and those that are `needed`."""
        found = [each for each in self._root.iterdir() if RELEASE.fullmatch(each.name)]
        found.sort(key=lambda each: each.stat().st_mtime, reverse=True)
        for release in found[keep:]:
            if release.name not in needed:
                shutil.rmtree(release, ignore_errors=True)

    def file_digests(self, release: Path) -> dict[str, str]:
        """SHA-256 of every bundle file that lies there, computed from the bytes, remembered by inode, size and time."""
        digests = {}
        seen: dict[str, tuple[tuple[int, int, int], str]] = {}
        for path in _bundle_files(release):
            stamp = stamp_of(path)
            known = self._seen.get(str(path))
            digest = known[1] if known and known[0] == stamp else sha256(path.read_bytes())
            seen[str(path)] = (stamp, digest)
            digests[str(path.relative_to(release))] = digest
        self._seen = seen
        return digests

    def on_disk(self, release: Path | None) -> str:
        """Digest of the whole as it lies on disk; empty when nothing does."""
        if release is None or not release.is_dir():
            return ""
        return digest_of_all(self.file_digests(release))

    def manifest(self, release: Path) -> Manifest:
        """The manifest of a release; raises OSError or Malformed when it was damaged."""
        return read_manifest((release / "manifest.json").read_bytes())


def _bundle_files(release: Path) -> list[Path]:
    found = [release / name for name in CONFIGS if (release / name).is_file()]
    for folder in ("maps", "certs", "secrets"):
        if (release / folder).is_dir():
            found += [path for path in (release / folder).iterdir() if path.is_file()]
    return found


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Inode, size and time: another one means that the file may have changed."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def replace_link(link: Path, target: Path) -> None:
    """Point a symlink elsewhere in one step: at no instant is there none, whoever dies when."""
    draft = link.with_name(f".{link.name}.new")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(link)


def make_dir(path: Path, group: int) -> None:
    """A private directory that the group may enter."""
    path.mkdir(parents=True, exist_ok=True)
    if group >= 0:
        os.chown(path, -1, group)
    path.chmod(MODES[0] if group >= 0 else 0o700)


def write_file(path: Path, content: bytes, group: int = -1) -> None:
    """Write and fsync one private file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        if group >= 0:
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, MODES[1])
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def replace_file(path: Path, content: bytes, group: int = -1) -> None:
    """Put a private file in the place of another one: who reads it finds either as a whole."""
    draft = path.with_name(path.name + ".new")
    write_file(draft, content, group)
    draft.replace(path)
    sync_dir(path.parent)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically."""
    replace_file(path, json.dumps(data, indent=1, sort_keys=True).encode() + b"\n")


def sync_dir(path: Path) -> None:
    """Make renames in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
