"""Which formats of configuration can be imported, how a file of each is recognised, and who reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from apps.importing.contract import Import
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.haproxy.text.sections import KINDS
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.options import ImportOptions

Reader = Callable[[str, Mapping[str, str], ImportOptions], Import]


@dataclass(frozen=True, slots=True)
class Format:
    """`content` is found in its texts alone, `pattern` names its main file; `file` is what people call it."""

    name: str
    title: str
    file: str
    pattern: str
    content: re.Pattern[str]
    read: Reader


# Content is looked for in this order.
FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format(
            "kubernetes",
            "Kubernetes",
            "manifests in YAML",
            "*.y*ml",
            re.compile(r"^[ \t]*(?:- )?[\"']?apiVersion[\"']?[ \t]*:", re.MULTILINE),
            read_kubernetes,
        ),
        Format(
            "haproxy",
            "HAProxy",
            "haproxy.cfg",
            "*.cfg",
            re.compile(rf"^[ \t]*(?:{'|'.join(sorted(KINDS))})(?=[ \t]+[\w#]|[ \t]*$)", re.MULTILINE),
            read_haproxy,
        ),
    )
}


def recognised(name: str, text: str) -> Format | None:
    """The format of a file, by what it says, or else by its name."""
    by_content = (each for each in FORMATS.values() if each.content.search(text))
    return next(by_content, None) or _by_name(name)


def main_files(files: Mapping[str, str]) -> list[str]:
    """Which of several files may be the one that names the others: by name, else by content, else any."""
    named = [name for name in files if _by_name(name)]
    return named or [name for name, text in files.items() if recognised(name, text)] or list(files)


def _by_name(name: str) -> Format | None:
    last = PurePosixPath(name).name
    return next((each for each in FORMATS.values() if fnmatch(last, each.pattern)), None)


def not_recognised(name: str) -> str:
    """What to do where nobody knows which format a file has."""
    files = ", ".join(f"{each.name} ({each.file})" for each in FORMATS.values())
    return f"{name} looks like none of the formats that are read. Say which it is: {files}."
