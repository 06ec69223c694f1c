"""The demo's configuration: which directories and ports it uses, read from the environment in one go."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from apps.agent.settings import default_user

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "deploy" / "examples" / "tutorial.yaml"
# The agent's sockets hang five words below its state directory and a unix address ends at 108 bytes.
LONGEST_RUN_DIR = 52
SAFE_PATH = re.compile(r"/[A-Za-z0-9._/-]+")


def _port(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    if not value:
        return default
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= 65535:
        raise SystemExit(f"{name} is {value!r}: a port is a number from 1 to 65535.")
    return int(value)


def _short(var: Path) -> Path:
    """A private directory for sockets: below `var` where its path is short and plain, else below /tmp."""
    wanted = var / "demo" / "run"
    if len(str(wanted)) <= LONGEST_RUN_DIR and SAFE_PATH.fullmatch(str(wanted)):
        return wanted
    return Path("/tmp") / f"spillway-{os.getuid()}-{hashlib.sha256(str(var).encode()).hexdigest()[:8]}"  # noqa: S108


@dataclass(frozen=True)
class DemoConfig:
    """Directories (absolute) and ports (on 127.0.0.1) of one running demo."""

    var: Path = field(default_factory=lambda: Path(os.environ.get("SPILLWAY_VAR", ROOT / "var")).resolve())
    console_port: int = field(default_factory=lambda: _port("SPILLWAY_PORT", 8000))
    http_port: int = field(default_factory=lambda: _port("SPILLWAY_HTTP_PORT", 8080))
    backend_port: int = field(default_factory=lambda: _port("SPILLWAY_BACKEND_PORT", 9100))
    agent_port: int = field(default_factory=lambda: _port("SPILLWAY_AGENT_PORT", 9440))
    redis_port: int = field(default_factory=lambda: _port("SPILLWAY_REDIS_PORT", 6390))
    client_port: int = field(default_factory=lambda: _port("SPILLWAY_CLIENT_PORT", 9190))
    overflow_port: int = field(default_factory=lambda: _port("SPILLWAY_OVERFLOW_PORT", 9700))

    @property
    def demo(self) -> Path:
        """What only the demo keeps: secrets, keys, logs, Redis."""
        return self.var / "demo"

    @property
    def run(self) -> Path:
        """Sockets and the agents' state."""
        return _short(self.var)

    @property
    def console_url(self) -> str:
        """Where people and programs reach Spillway."""
        return f"http://127.0.0.1:{self.console_port}"

    @property
    def supervisor_conf(self) -> Path:
        """What supervisord runs; written anew at each start."""
        return self.demo / "supervisord.conf"

    @property
    def supervisor_pid(self) -> Path:
        """Process id of the supervisord that runs, if any."""
        return self.demo / "supervisord.pid"

    @property
    def ports_json(self) -> Path:
        """The ports that this copy was started with, for commands that come without its variables."""
        return self.demo / "ports.json"

    @property
    def env_sh(self) -> Path:
        """Addresses and keys for a shell: `. var/env.sh`."""
        return self.var / "env.sh"

    @property
    def dev_json(self) -> Path:
        """Addresses and keys for scripts that go on from here."""
        return self.var / "dev.json"

    def make_directories(self) -> None:
        """Create what is missing, readable by the owner alone."""
        self.var.mkdir(parents=True, exist_ok=True)
        for directory in (self.demo, self.demo / "logs", self.demo / "redis", self.demo / "pki", self.run):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o700)
        self._let_haproxy_pass()
        if self.run.owner() != self.demo.owner():
            raise SystemExit(f"{self.run} belongs to {self.run.owner()}: remove it or choose another SPILLWAY_VAR.")

    def _let_haproxy_pass(self) -> None:
        """Where started as root, HAProxy runs as a user of its own, who must reach the agents' releases below `run`."""
        if os.geteuid() == 0 and (user := default_user()):
            for directory in {self.demo, self.run}:
                shutil.chown(directory, group=pwd.getpwnam(user).pw_gid)
                directory.chmod(0o710)


def running() -> DemoConfig:
    """The configuration of this copy as it was started; what the environment says goes first, as for `up`."""
    config = DemoConfig()
    try:
        known = json.loads(config.ports_json.read_text())
    except (OSError, ValueError):
        return config
    said = {name for name, variable in PORTS.items() if os.environ.get(variable)}
    kept: dict[str, Any] = {name: int(port) for name, port in known.items() if name in PORTS.keys() - said}
    return replace(config, **kept)


def remember(config: DemoConfig) -> None:
    """Keep the ports for `running`."""
    config.ports_json.write_text(json.dumps({name: getattr(config, name) for name in PORTS}))


PORTS = {
    "console_port": "SPILLWAY_PORT",
    "http_port": "SPILLWAY_HTTP_PORT",
    "backend_port": "SPILLWAY_BACKEND_PORT",
    "agent_port": "SPILLWAY_AGENT_PORT",
    "redis_port": "SPILLWAY_REDIS_PORT",
    "client_port": "SPILLWAY_CLIENT_PORT",
    "overflow_port": "SPILLWAY_OVERFLOW_PORT",
}
PYTHON = sys.executable
