"""The release that upgrades begin at: the last tag before this commit, or else the commit that `earlier.txt` names."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMED = Path(__file__).with_suffix(".txt")
KEPT = ROOT / "var" / "earlier"
VENDOR = Path("frontend/static/vendor")


def missing() -> str:
    """Why its tree cannot be had here; empty when it can."""
    done = _git("cat-file", "-e", f"{release()}^{{commit}}")
    return "" if done.returncode == 0 else f"{release()} is not in this clone: git fetch --unshallow --tags"


def release() -> str:
    """A tag, or a commit. A tag on this commit is no release before it: an upgrade from it would try nothing."""
    found = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
    return found.stdout.strip() or NAMED.read_text().split()[0]


def tree() -> Path:
    """All its files, unpacked once."""
    target = KEPT / release()
    if not target.is_dir():
        KEPT.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=KEPT))
        packed = folder.with_suffix(".tar")
        subprocess.run(["git", "archive", "--format", "tar", "-o", packed, release()], cwd=ROOT, check=True)
        subprocess.run(["tar", "-xf", packed, "-C", folder], check=True)
        packed.unlink()
        # Its console reads all static files when it starts; third-party ones are never in the history.
        (folder / VENDOR).symlink_to(ROOT / VENDOR)
        folder.chmod(0o755)
        try:
            folder.rename(target)
        except OSError:  # another worker was faster
            shutil.rmtree(folder)
    return target


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
