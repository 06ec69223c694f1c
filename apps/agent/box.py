"""CHECK on the node: starts haproxy in a box, with no rights, secrets, network or time that it does not need."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

from apps.agent.errors import Refusal
from apps.agent.settings import Settings

CHECK_SECONDS = 5
MEMORY = 4 * 1024**3
NAMED_LINE = re.compile(r"haproxy\.cfg:(\d+)\]")
CLEAN_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class Box:
    """Command prefixes that take rights away, as far as this machine lets us."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._network = self._without_network()

    def prefix(self, network: bool) -> list[str]:
        """Words to put before a command: limits, own user where started as root, no network unless asked for."""
        words = [] if network else list(self._network)
        if shutil.which("prlimit"):
            words += ["prlimit", f"--cpu={CHECK_SECONDS * 4}", "--core=0", f"--as={MEMORY}", "--"]
        if self._settings.boxes and shutil.which("setpriv"):
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
        """`haproxy -c` in the box; raises Refusal with HAProxy's own line."""
        command = [self._settings.haproxy, "-c", "-f", str(node_cfg), "-f", str(release / "haproxy.cfg")]
        try:
            done = subprocess.run(
                [*self.prefix(network=False), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=CLEAN_ENV,
                cwd=str(release),
                timeout=CHECK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Refusal(f"haproxy -c did not come to an end within {CHECK_SECONDS} seconds.", "validate") from None
        except OSError as error:
            raise Refusal(f"haproxy -c could not be started: {error}.", "validate") from error
        if done.returncode != 0:
            raise refusal_from(done.stdout.decode("utf-8", "replace"), "validate", release)


def refusal_from(output: str, stage: str, release: Path | None) -> Refusal:
    """Turn HAProxy's own words into a refusal: its first alert is the message, its line number the line."""
    text = output.replace(str(release) + "/", "") if release else output
    text = re.sub(r"/[^\s\]]*/(haproxy|node)\.cfg", r"\1.cfg", text)
    alerts = [line for line in text.splitlines() if "[ALERT]" in line]
    first = re.sub(r"^\[ALERT\]\s+\(\d+\)\s*:\s*", "", alerts[0]) if alerts else text.strip()[:300]
    found = NAMED_LINE.search(text)
    return Refusal(f"HAProxy refuses the file: {first}", stage, int(found.group(1)) if found else None, text)


def readable_group(settings: Settings) -> int:
    """Group that may read releases, so that the box and the worker can; -1 where nobody else has to."""
    return pwd.getpwnam(settings.user).pw_gid if settings.drops_rights else -1


def owner_of_taste(settings: Settings) -> int:
    """User that the throw-away haproxy runs as."""
    return pwd.getpwnam(settings.user).pw_uid if settings.boxes else os.geteuid()
