"""`spillway-admin` on the path of a console: runs the command of the clone that the console runs from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HOME = "SPILLWAY_HOME"
DEFAULT = "/srv/spillway"


def main() -> None:
    """Become it; says where it was looked for when it is not there."""
    command = Path(os.environ.get(HOME) or DEFAULT) / "spillway-admin"
    if not command.exists():
        sys.exit(f"{command} is not there. Set {HOME} to the folder of the console.")
    os.execv(str(command), [str(command), *sys.argv[1:]])  # noqa: S606 - the program is ours, without a shell
