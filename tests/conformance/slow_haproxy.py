"""A real HAProxy behind a program that makes a node slow or short of memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from apps.compiler.model.haproxy_version import parse_version

REAL = shutil.which("haproxy") or "haproxy"
# Further releases to ask, by their paths with colons between: HAProxy has answered `reload` otherwise since 2.7.
BINARIES = [REAL, *filter(None, os.environ.get("HAPROXY_BINARIES", "").split(":"))]


def version_of(binary: str) -> tuple[int, int]:
    """What it says of itself."""
    said = subprocess.run([binary, "-v"], capture_output=True, text=True, check=True).stdout
    return parse_version(said.split("version ")[1])


# `exec -a` keeps this program's name, so that a master that begins anew begins here; what is a script itself
# (tests/haproxy_releases.py) is told the name.
SCRIPT = """#!/bin/bash
case " $* " in
*" -vv "*) word=version ;;
*" -c "*) word=check ;;
*" -db "*) word=trial ;;
*" -sf "*|*" -x "*) word=reload ;;
*) word=start ;;
esac
echo "$word $$" >> "{folder}/calls"
if [ -f "{folder}/$word" ]; then . "{folder}/$word"; fi
ARGV0="$0" exec -a "$0" "{real}" "$@"
"""


class SlowHaproxy:
    """`path` is the binary; `before(word, line)` runs a line of shell before version, check, trial, start or reload."""

    def __init__(self, folder: Path, real: str = REAL) -> None:
        self._folder = folder / "binary"
        self._folder.mkdir()
        self._folder.chmod(0o777)
        self.path = self._folder / "haproxy"
        self.path.write_text(SCRIPT.format(folder=self._folder, real=real))
        self.path.chmod(0o755)
        (self._folder / "calls").touch()
        (self._folder / "calls").chmod(0o666)

    def before(self, word: str, line: str) -> None:
        """From now on; an empty line takes it away."""
        path = self._folder / word
        path.write_text(line + "\n")
        path.chmod(0o644)

    def calls(self, word: str) -> list[int]:
        """Process ids of the calls of one kind."""
        lines = (self._folder / "calls").read_text().splitlines()
        return [int(line.split()[1]) for line in lines if line.split()[0] == word]
