"""Files that come with haproxy.cfg: maps, lists, error pages, certificates; found by their path or by their name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath


class Files:
    """Texts by path; a path of the old machine is found by its end as well."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self._by_name: dict[str, list[str]] = {}
        for path in texts:
            self._by_name.setdefault(PurePosixPath(path).name, []).append(path)
        self.asked: dict[str, None] = {}

    def text(self, path: str) -> str | None:
        """The content, None for a file that was not given."""
        best = self.path_of(path)
        if best is None:
            self.asked[path] = None
            return None
        return self._texts[best]

    def path_of(self, path: str) -> str | None:
        """Under which of the given names the file is."""
        if path in self._texts:
            return path
        found = self._by_name.get(PurePosixPath(path).name, [])
        return max(found, key=lambda each: _common_end(each, path), default=None)

    def below(self, folder: str) -> list[str]:
        """Paths of files in a folder of this path."""
        name = folder.rstrip("/")
        inside = [path for path in self._texts if str(PurePosixPath(path).parent) == name]
        last = PurePosixPath(name).name
        return sorted(inside or [path for path in self._texts if PurePosixPath(path).parent.name == last])

    def lines(self, path: str) -> list[str] | None:
        """A list: its lines without comments."""
        text = self.text(path)
        if text is None:
            return None
        return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]

    def entries(self, path: str) -> list[tuple[str, str]] | None:
        """A map: keys and values in order."""
        lines = self.lines(path)
        if lines is None:
            return None
        parts = (line.split(None, 1) for line in lines)
        return [(part[0], part[1].strip() if len(part) > 1 else "") for part in parts]


def _common_end(one: str, other: str) -> int:
    pairs = zip(reversed(PurePosixPath(one).parts), reversed(PurePosixPath(other).parts), strict=False)
    count = 0
    for left, right in pairs:
        if left != right:
            break
        count += 1
    return count
