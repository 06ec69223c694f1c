"""What `check` finds: the parts of the page of the system, and what only an environment shows."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from controlplane import environment

# Families of names that the settings do not list, and names that other programs of ours read.
OTHERS = ("SPILLWAY_DNS_", "SPILLWAY_CLOUD_")
_ALSO_READ = (
    "PROCESS ENVIRONMENT_FILE HOME RUN PORT URL TOKEN TEST_TEMPLATE TEST_WORKERS DEMO "
    # Of units, and of the console's front.
    "BIND CHECK_HOST CONSOLE_A CONSOLE_B TRUSTED_PROXIES WEB_PROCESSES WEBHOOK_WORKER_THREADS STACK_RUNS_AT_ONCE "
    "LOADGEN_THREADS"
)
ALSO_KNOWN = frozenset(f"SPILLWAY_{name}" for name in _ALSO_READ.split())

# Parts that fail where no process of a console runs.
OF_PROCESSES = frozenset({"Versions", "Web", "Event streams", "Workers", "Scheduler", "Collectors", "Log collectors"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what, its state (ok, warning, failed, unknown), what was found, what to do."""

    name: str
    state: str
    message: str
    remedy: str

    def document(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def all_of_them() -> list[Finding]:
    """Every part, then the names that nobody reads."""
    from apps.system.selectors import parts

    found = [Finding(each.title, each.state.value, each.message, each.remedy) for each in parts()]
    return [*found, *_misspelt()]


def of_settings() -> list[Finding]:
    """What the settings say for themselves, once they could be read: a name that nobody reads is an error there."""
    wrong = [replace(each, state="failed") for each in _misspelt()]
    return wrong or [Finding("Settings", "ok", "Every one has its shape.", "")]


def settings_shown() -> dict[str, str]:
    """What each setting was given, by name; of secrets only whether they are set."""
    return {name: _shown(name) for name in [*environment.KNOWN, *_unlisted()]}


def _shown(name: str) -> str:
    given = os.environ.get(name)
    if not given:
        return "not set"
    known = environment.KNOWN.get(name)
    return "set, not shown" if known is None or known.secret else given


def _unlisted() -> list[str]:
    return sorted(name for name in os.environ if name.startswith("SPILLWAY_") and name not in environment.KNOWN)


def _misspelt() -> list[Finding]:
    names = [name for name in _unlisted() if not name.startswith(OTHERS) and name not in ALSO_KNOWN]
    remedy = "Correct or remove it: docs/operate/configuration.md has all names."
    return [Finding(name, "warning", "No program reads this setting.", remedy) for name in names]
