"""The refusals: what the agent answers when it does not do what it was asked."""

from __future__ import annotations

import subprocess
from typing import Any


class Refusal(Exception):
    """The node goes on running what it ran; `stage` is validate, trial_run, switch, confirm or runtime."""

    status = 422

    def __init__(self, message: str, stage: str, line: int | None = None, output: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.line = line
        self.output = output

    def body(self) -> dict[str, Any]:
        """The JSON answer."""
        return {
            "error": "refused",
            "stage": self.stage,
            "message": self.message,
            "line": self.line,
            "output": self.output[-8000:],
        }


class Unavailable(Exception):
    """The node cannot do it now: no time, memory, disk or program; it says nothing about what was asked for."""

    status = 503

    def __init__(self, message: str, stage: str) -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage

    def body(self) -> dict[str, Any]:
        """The JSON answer."""
        return {"error": "unavailable", "stage": self.stage, "message": self.message}


class Crashed(Unavailable):
    """HAProxy itself broke down on the files: by the files, or by this machine, which only another try can tell."""


# How a push may end without what was asked for: the node goes on running what it ran.
FAILURES = (Refusal, Unavailable, OSError, subprocess.TimeoutExpired)


def unavailable(error: Exception, stage: str) -> Unavailable:
    """The failure of a part of this machine, as what the node answers."""
    return error if isinstance(error, Unavailable) else Unavailable(f"The node could not do it: {error}.", stage)


class Superseded(Exception):
    """The generation is not higher than the one that runs."""

    status = 409

    def __init__(self, asked: int, running: int) -> None:
        super().__init__(f"Generation {asked} is superseded: this node already runs generation {running}.")

    def body(self) -> dict[str, Any]:
        """The JSON answer."""
        return {"error": "superseded", "message": str(self)}


class Malformed(Exception):
    """The request itself is wrong; nothing was looked at."""

    status = 400

    def body(self) -> dict[str, Any]:
        """The JSON answer."""
        return {"error": "malformed", "message": str(self)}


class Missing(Exception):
    """A runtime request lacks the text of files that changed otherwise; send it again with them."""

    status = 428

    def __init__(self, paths: list[str]) -> None:
        super().__init__("The full text of these files is needed: " + ", ".join(paths))
        self.paths = paths

    def body(self) -> dict[str, Any]:
        """The JSON answer; `missing` lists the paths."""
        return {"error": "missing", "message": str(self), "missing": self.paths}
