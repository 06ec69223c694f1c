"""The roles for Ansible on booted machines of Debian, which are reached by SSH as anybody's hosts are."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.booted import NETWORK, Machine, base

ROOT = Path(__file__).resolve().parents[2]
ANSIBLE = ROOT / "deploy" / "ansible"
TOOLS = ROOT / "var" / "deploy-venv" / "bin"
HOSTS = {"spillway_consoles": {"console": 1}, "spillway_nodes": {"edge-1": 2}}
# What a host must have for Ansible at all.
REACHED_BY = "openssh-server python3-apt"
RECAP = re.compile(r"^([\w.-]+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


def fetch_ssh(release: str) -> None:
    """Have the packages in the root of the release, from where its machines take them."""
    root = base(release)
    if not [*(root / "var/cache/apt/archives").glob("openssh-server_*")]:
        command = f"apt-get update -qq && apt-get install -qq -y --no-install-recommends --download-only {REACHED_BY}"
        subprocess.run(["chroot", str(root), "sh", "-c", command], check=True, timeout=600)


def secure(folder: Path) -> None:
    """A certificate of the console with its key, and a key for SSH."""
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=console.example"
    words += " -addext subjectAltName=DNS:console.example -keyout tls.key -out ca.pem"
    subprocess.run(words.split(), cwd=folder, check=True, capture_output=True)
    (folder / "tls.pem").write_text((folder / "ca.pem").read_text() + (folder / "tls.key").read_text())
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "ssh")], check=True)


def let_in(machine: Machine, folder: Path) -> None:
    """Whoever has the key, as root."""
    machine.sh(f"apt-get install -y -qq --no-install-recommends {REACHED_BY}")
    machine.copy(folder / "ssh.pub", "/root/.ssh/authorized_keys")


@dataclass(frozen=True, slots=True)
class Played:
    """How a run of the playbook ended, with everything that it said."""

    code: int
    said: str

    @property
    def changed(self) -> dict[str, int]:
        """How many tasks changed something, by host."""
        return {host: int(count) for host, count, _, _ in RECAP.findall(self.said)}


@dataclass(frozen=True, slots=True)
class Controller:
    """Where the playbook is run: beside the machines, on their network."""

    folder: Path
    beside: Machine

    def play(self, variables: Mapping[str, Any], *flags: str) -> Played:
        """Run deploy/ansible/site.yml with these variables for all hosts."""
        options = f"-i {self.folder / 'ssh'} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        inventory = {
            group: {"hosts": {name: {"ansible_host": f"{NETWORK}.{number}"} for name, number in hosts.items()}}
            for group, hosts in HOSTS.items()
        }
        common = {
            "ansible_user": "root",
            "ansible_ssh_common_args": options,
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(inventory | {"all": {"vars": {**common, **variables}}}))
        command = ["nsenter", "-t", str(self.beside.leader), "-n", "--", str(TOOLS / "ansible-playbook"), *flags]
        command += ["-i", str(self.folder / "hosts.yml"), "site.yml"]
        given = {
            "PATH": f"{TOOLS}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ANSIBLE_NOCOLOR": "1",
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            command,
            cwd=ANSIBLE,
            env=given,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Played(done.returncode, done.stdout + done.stderr)
