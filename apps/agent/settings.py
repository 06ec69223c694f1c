"""The node's own facts: what the agent was told on its command line."""

from __future__ import annotations

import ipaddress
import os
import pwd
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

WORKER = "haproxy"  # the user that distributions make for it
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SAFE_PATH = re.compile(r"/[A-Za-z0-9._/-]+")
INTERFACE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
PASSWORD = re.compile(r"[!#-&(-~]{1,80}")
LARGEST_AS = 4_294_967_294
MOST_LOG_MEGABYTES = 1024 * 1024
LONGEST_SOCKET = 84  # haproxy binds `<path>.<pid>.tmp` first and a unix address ends at 108 bytes


@dataclass(frozen=True)
class Settings:
    """Seconds are seconds; `state_dir` is absolute; `user` only counts where the agent runs as root.

    `check_timeout` and `confirm_timeout` are given to an empty release; each is longer for a large one
    (check/load_time.py).

    `resolvers` are the name servers (address, port) that are asked for servers' names, else those of resolv.conf.
    `log_megabytes` is the most that request lines take on disk, compressed, until the console fetches them.
    `interface` is where addresses that VRRP moves are put; `bgp_neighbours` are (AS number, address) of the routers.
    """

    name: str
    state_dir: Path
    address: str = "127.0.0.1"
    port_offset: int = 0
    haproxy: str = "haproxy"
    user: str = ""
    drift_every: float = 10.0
    soak: float = 30.0
    keep: int = 10
    reload_gap: float = 2.0
    check_timeout: float = 15.0
    confirm_timeout: float = 15.0
    leave_running: bool = False
    keepalived: str = "keepalived"
    bird: str = "bird"
    interface: str = ""
    bgp_as: int = 0
    bgp_neighbours: tuple[tuple[int, str], ...] = ()
    bgp_password_file: Path | None = None
    resolvers: tuple[tuple[str, int], ...] = ()
    log_megabytes: int = 1024

    def __post_init__(self) -> None:
        """One haproxy from now on: for its version, checks, trial runs and the service."""
        object.__setattr__(self, "haproxy", absolute(self.haproxy))

    @property
    def run_dir(self) -> Path:
        """Private directory of the sockets."""
        return self.state_dir / "run"

    @property
    def trial_dir(self) -> Path:
        """Private directory of the throw-away haproxy's sockets."""
        return self.run_dir / "trial"

    @property
    def drops_rights(self) -> bool:
        """True where haproxy is started as root and asked to become somebody else."""
        return bool(self.user) and os.geteuid() == 0

    @property
    def sandboxed(self) -> bool:
        """True where checks and trial runs run as that user too: it must be able to reach the releases."""
        return self.drops_rights and can_enter(self.user, self.state_dir)

    @property
    def health_file(self) -> Path:
        """Which servers were down before the last reload, for the worker that it starts."""
        return self.run_dir / "servers"

    @property
    def tickets_dir(self) -> Path:
        """Private directory of the keys of session tickets, one file for each listener."""
        return self.run_dir / "tickets"

    @property
    def own_ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The node's address where others can reach it by that; None for loopback, for all addresses and for names."""
        try:
            found = ipaddress.ip_address(self.address)
        except ValueError:
            return None
        return None if found.is_loopback or found.is_unspecified else found

    @property
    def health_watchdog(self) -> Path:
        """The program that keepalived and BIRD's watch ask; it does not need the agent."""
        return self.state_dir / "health_watchdog.py"

    @property
    def facts(self) -> Path:
        """What the health watchdog goes by."""
        return self.run_dir / "facts.json"

    @property
    def maintenance(self) -> Path:
        """While this file is there the node keeps no addresses."""
        return self.state_dir / "maintenance"

    def problems(self) -> list[str]:
        """Sentences that say why the agent cannot start with these settings; empty when it can."""
        found = []
        if self.user and os.geteuid() == 0 and not exists(self.user):
            found.append(f"There is no user {self.user} on this machine.")
        if not SAFE_PATH.fullmatch(str(self.state_dir)):
            found.append(
                f"The state directory {self.state_dir} may only contain letters, digits, dots, dashes and slashes."
            )
        longest = len(str(self.trial_dir / "worker.sock"))
        if longest > LONGEST_SOCKET:
            found.append(
                f"{self.state_dir}: the state directory is too long: its sockets' paths have {longest} characters, "
                f"and {LONGEST_SOCKET} is the most."
            )
        if not 0 < self.log_megabytes <= MOST_LOG_MEGABYTES:
            found.append(f"--log-megabytes must lie between 1 and {MOST_LOG_MEGABYTES}.")
        if not 0 <= self.port_offset <= 60000:
            found.append("The port offset must lie between 0 and 60000.")
        return found + self._address_problems()

    def _address_problems(self) -> list[str]:
        """The same for what addresses that move need."""
        found = []
        if self.interface and not INTERFACE.fullmatch(self.interface):
            found.append(f"{self.interface!r} is not the name of an interface.")
        if not 0 <= self.bgp_as <= LARGEST_AS or not all(0 < number <= LARGEST_AS for number, _ in self.bgp_neighbours):
            found.append(f"An AS number lies between 1 and {LARGEST_AS}.")
        if bool(self.bgp_as) != bool(self.bgp_neighbours):
            found.append("Give --bgp-as and --bgp-neighbour together.")
        if self.bgp_password_file is not None and not PASSWORD.fullmatch(text_of(self.bgp_password_file)):
            found.append(
                f"{self.bgp_password_file} must hold one password of at most 80 signs, without quotes and spaces."
            )
        return found


def absolute(program: str) -> str:
    """The program's path; the word as it is where there is none of that name."""
    found = shutil.which(program) or shutil.which(program, path=SYSTEM_PATH)
    return str(Path(found).absolute()) if found else program


def text_of(path: Path) -> str:
    """What a small file says, without the end of its line; empty when it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def exists(user: str) -> bool:
    """True when this machine knows the user."""
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def default_user() -> str:
    """`haproxy` where the agent is started as root and that user exists; else nobody."""
    return WORKER if os.geteuid() == 0 and exists(WORKER) else ""


def can_enter(user: str, folder: Path) -> bool:
    """True when the user may pass every directory above `folder`, by owner, group and mode."""
    entry = pwd.getpwnam(user)
    for parent in folder.parents:
        stat = parent.stat()
        own, group = stat.st_uid == entry.pw_uid, stat.st_gid == entry.pw_gid
        if not stat.st_mode & (0o100 if own else 0o010 if group else 0o001):
            return False
    return True
