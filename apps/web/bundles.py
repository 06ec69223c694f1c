"""One style sheet and one script for every page, joined from what we write: a page asks for two files, not twenty.

There is no build step: they are joined when they are looked for, and anew once a source is newer; `collectstatic`
collects them as every other file.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage

SOURCES = Path(settings.BASE_DIR) / "frontend" / "static"
JOINED = Path(settings.VAR_DIR) / "joined"
# In the order of the layers.
SHEETS = (
    "css/tokens.css", "vendor/uplot.css", "css/base.css", "css/shell.css", "css/components.css", "css/data.css",
    "css/forms.css", "css/flow.css", "css/overview.css", "css/schedules.css", "css/capacity.css", "css/requests.css",
    "css/status.css",
)  # fmt: skip
# Each without imports of its own; app.js, which fetches what only some pages need, is the last.
SCRIPTS = ("js/live.js", "js/theme.js", "js/times.js", "js/clicks.js", "js/forms.js", "js/keys.js", "js/app.js")
logger = logging.getLogger(__name__)
_COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)
_COMMENT_LINES = re.compile(r"^\s*//.*\n", re.MULTILINE)


def joined_sheets(texts: Iterable[str]) -> str:
    """Style sheets as one, without comments and indentation."""
    lines = (line.strip() for text in texts for line in _COMMENTS.sub("", text).splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def joined_scripts(texts: Iterable[str]) -> str:
    """Modules as one: each is a block, so that no name meets that of another."""
    return "".join(f"{{\n{without_comments(text)}}}\n" for text in texts)


def without_comments(text: str) -> str:
    """A script as browsers get it: without the comments that have lines of their own."""
    return _COMMENT_LINES.sub("", re.sub(r"\A/\*.*?\*/\n", "", text))


KINDS = {"css/console.css": (SHEETS, joined_sheets), "js/console.js": (SCRIPTS, joined_scripts)}


class JoinedFiles(BaseFinder):
    """Finds the joined files for `collectstatic` and for servers that serve sources."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.storage = FileSystemStorage(JOINED)

    def check(self, **_kwargs: Any) -> list[Any]:
        """Nothing to configure."""
        return []

    def find(self, path: str, find_all: bool = False, **_kwargs: Any) -> Any:
        """Where the joined file stands, once it is as new as its sources."""
        if path not in KINDS or not (found := fresh(path)).exists():
            return []
        return [str(found)] if find_all else str(found)

    def list(self, _ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        """Every joined file with its storage."""
        for path in KINDS:
            if fresh(path).exists():
                yield path, self.storage


def fresh(path: str) -> Path:
    """The joined file, written again where a source is newer; several processes may do so in the same moment.

    A full disk keeps no console from starting: its API and nodes need no style sheet.
    """
    names, join = KINDS[path]
    sources, target = [SOURCES / name for name in names], JOINED / path
    newest = max(source.stat().st_mtime for source in (*sources, Path(__file__)))
    if not target.exists() or target.stat().st_mtime < newest:
        try:
            _write(target, join(source.read_text() for source in sources))
        except OSError as error:
            logger.error("pages lack %s, or have an old one, until it can be written: %s", path, error)
    return target


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_suffix(f".{os.getpid()}")
    try:
        written.write_text(text)
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc] # it brings no types
    """Collected files by the hash of what is in them, compressed, for ever; by their names until they are collected."""

    support_js_module_import_aggregation = True

    def stored_name(self, name: str) -> str:
        """The name with the hash, where the manifest of what was collected has one; sources have none."""
        if settings.DEVELOPMENT:
            return name
        return str(self.hashed_files.get(self.hash_key(self.clean_name(name)), name))
