"""The table of keywords knows every one that the installed HAProxy has registered."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from apps.importing.haproxy.text.keywords import fact_of
from apps.importing.haproxy.text.tables.proxies import BIND_OPTIONS, SERVER_OPTIONS

pytestmark = pytest.mark.processes


def registered() -> Iterator[tuple[str, list[str]]]:
    """Section and words of each keyword that `haproxy -dKall` lists."""
    listed = subprocess.run(
        ["haproxy", "-dKall", "-q", "-c", "-f", "/dev/null"], capture_output=True, text=True, check=False
    )
    part = listed.stdout.partition("configuration keywords:")[2].partition("# List of registered CLI")[0]
    section = ""
    for line in part.splitlines():
        if line and not line.startswith("\t"):
            section = line.strip()
        elif line.strip():
            yield section, [word.rstrip("*") for word in line.split() if word not in ("[", "+1", "+-1")]


def is_known(section: str, words: list[str]) -> bool:
    """Whether the table has it."""
    if words[0] == "bind":
        return words[-1] in BIND_OPTIONS or len(words) == 2
    if words[0] == "server":
        return words[-1] in SERVER_OPTIONS
    return section not in ("global", "listen") or fact_of(section, tuple(words)) is not None


def test_every_keyword_that_haproxy_registers_is_known() -> None:
    found = list(registered())
    assert len(found) > 400
    assert [each for each in found if not is_known(*each)] == []


def test_a_keyword_that_is_missing_would_be_noticed() -> None:
    assert not is_known("listen", ["frobnicate"])
    assert not is_known("listen", ["http-request", "frobnicate"])
    assert not is_known("global", ["frobnicate"])
    assert not is_known("listen", ["server", "<name>", "<addr>", "frobnicate"])
