"""An export as a folder on this machine, or as an archive; a README says what it is and what it does not say."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from apps.exporting.contract import Export

README = "README.md"
PRIVATE, PUBLIC = 0o600, 0o644
# One time for every file, so that the same export is the same archive.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def with_readme(export: Export, title: str, about: str) -> Export:
    """The export with a file that tells people what to do with the others."""
    lines = [f"# {title}", "", about, ""]
    lines += ["Nothing is left out." if not export.not_said else "What is left out, or left to whoever runs it:", ""]
    lines += [f"* {each}" for each in export.not_said]
    text = "\n".join(lines).rstrip() + "\n"
    return Export({README: text.encode(), **export.files}, export.private, export.not_said)


def write_folder(export: Export, folder: Path) -> None:
    """All files; those with keys can be read by their owner alone. Raises OSError where the folder is there."""
    folder.mkdir(parents=True)
    for path, content in export.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=_mode(export, path))
        file.write_bytes(content)


def archive_of(export: Export, folder: str) -> bytes:
    """A zip with one folder in it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as files:
        for path, content in _sorted(export.files).items():
            entry = zipfile.ZipInfo(f"{folder}/{path}", _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | _mode(export, path)) << 16
            files.writestr(entry, content)
    return made.getvalue()


def _mode(export: Export, path: str) -> int:
    return PRIVATE if path in export.private else PUBLIC


def _sorted(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return dict(sorted(files.items()))
