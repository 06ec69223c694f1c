"""Starts haproxy in a sandbox, with no rights, secrets, network or time that it does not need."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
from math import ceil
from pathlib import Path

from apps.agent.check.load_time import load_seconds
from apps.agent.errors import Crashed, Refusal, Unavailable
from apps.agent.settings import SYSTEM_PATH, Settings

MEMORY = 4 * 1024**3
NAMED_LINE = re.compile(r"haproxy\.cfg:(\d+)\]")
# What HAProxy says where the machine is short of something. Its quotations are left out: they may be anybody's words.
QUOTED = re.compile(r"'.*'")
SHORTAGE = re.compile(
    r"out of memory|not enough memory|no memory|cannot allocate|allocation error|memory allocation"
    r"|no space left|too many open files",
    re.IGNORECASE,
)
# Signals by which a program is ended for what it did itself; the others come from outside, or from a limit.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
CLEAN_ENV = {"PATH": SYSTEM_PATH}


class Sandbox:
    """Command prefixes that take rights away, as far as this machine lets us."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._network = self._without_network()

    def prefix(self, network: bool, seconds: float) -> list[str]:
        """Words to put before a command that may run for so long: limits, own user where started as root, no network.

        With `network` it keeps the node's.
        """
        words = [] if network else list(self._network)
        if shutil.which("prlimit"):
            words += ["prlimit", f"--cpu={ceil(seconds * 4)}", "--core=0", f"--as={MEMORY}", "--"]
        if self._settings.sandboxed and shutil.which("setpriv"):
            entry = pwd.getpwnam(self._settings.user)
            words += ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
            words += ["--no-new-privs", "--inh-caps=-all", "--"]
        return words

    def _without_network(self) -> list[str]:
        for words in (["unshare", "-n", "--"], ["unshare", "-U", "-r", "-n", "--"]):
            if (
                shutil.which("unshare")
                and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
            ):
                return words
        return []

    def check(self, release: Path, node_cfg: Path) -> None:
        """`haproxy -c` in the sandbox; raises Refusal with HAProxy's own line, or Unavailable without a verdict."""
        seconds = self._settings.check_timeout + load_seconds(release)
        command = [self._settings.haproxy, "-c", "-f", str(node_cfg), "-f", str(release / "haproxy.cfg")]
        try:
            done = subprocess.run(
                [*self.prefix(network=False, seconds=seconds), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=CLEAN_ENV,
                cwd=str(release),
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = (
                f"haproxy -c did not finish within {seconds:.0f} seconds. Raise --check-timeout to allow more time."
            )
            raise Unavailable(message, "validate") from None
        except OSError as error:
            raise Unavailable(f"haproxy -c could not be started: {error}.", "validate") from error
        if done.returncode != 0:
            raise failure_from(done.stdout.decode("utf-8", "replace"), "validate", release, done.returncode)


def failure_from(output: str, stage: str, release: Path | None, status: int | None = None) -> Refusal | Unavailable:
    """What haproxy meant by ending: only a file that it names its own trouble with is refused.

    `status` is how the process ended where that is known; below zero a signal ended it.
    """
    if status is not None and -status in CRASHES:
        return Crashed(f"haproxy crashed on the file (signal {-status}).", stage)
    if status is not None and status < 0:
        return Unavailable(f"haproxy was ended by signal {-status} before it could check the file.", stage)
    alerts = [line for line in output.splitlines() if "[ALERT]" in line]
    short = next((line for line in alerts if SHORTAGE.search(QUOTED.sub("", line))), "")
    if short or not alerts:
        said = (short or output.strip() or "no output")[:300]
        return Unavailable(f"haproxy could not check the file on this machine: {said}", stage)
    return refusal_from(output, stage, release)


def refusal_from(output: str, stage: str, release: Path | None) -> Refusal:
    """Turn HAProxy's own words into a refusal: its first alert is the message, its line number the line."""
    text = output.replace(str(release) + "/", "") if release else output
    text = re.sub(r"/[^\s\]]*/(haproxy|node)\.cfg", r"\1.cfg", text)
    alerts = [line for line in text.splitlines() if "[ALERT]" in line]
    first = re.sub(r"^\[ALERT\]\s+\(\d+\)\s*:\s*", "", alerts[0]) if alerts else text.strip()[:300]
    found = NAMED_LINE.search(text)
    return Refusal(f"HAProxy rejects the file: {first}", stage, int(found.group(1)) if found else None, text)


def readable_group(settings: Settings) -> int:
    """Group that may read releases, so that the sandbox and the worker can; -1 where nobody else has to."""
    return pwd.getpwnam(settings.user).pw_gid if settings.drops_rights else -1


def owner_of_trial(settings: Settings) -> int:
    """User that the throw-away haproxy runs as."""
    return pwd.getpwnam(settings.user).pw_uid if settings.sandboxed else os.geteuid()
