"""Machines of Debian that boot systemd in a root of their own, joined by cables, with no way out (systemd-nspawn)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.address_env import missing_here, run
from tests.haproxy_releases import mirror_of_debian

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ROOT / "var" / "roots"
SUITES = {"12": "bookworm", "13": "trixie"}
# On each machine before anything of ours; what the packages depend on is fetched, and installed by them.
INSTALLED = "systemd,systemd-sysv,dbus,ca-certificates,iproute2,curl"
FETCHED = "postgresql redis-server haproxy python3 openssl libstdc++6"
NETWORK = "10.79.0"
PATIENCE_S = 120.0


def missing() -> str:
    """Why this machine cannot boot others, as a sentence; empty when it can."""
    return missing_here("systemd-nspawn", "mmdebstrap", "nsenter")


def base(release: str) -> Path:
    """The root of a release with the packages fetched, from wherever apt takes Debian; made once."""
    target = ROOTS / f"debian-{release}"
    if not target.is_dir():
        ROOTS.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=ROOTS))
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--include={INSTALLED}"]
        fetch = "apt-get -o APT::Install-Recommends=true install -qq -y --download-only"
        command += ["--skip=cleanup/apt", f"--customize-hook=chroot $1 {fetch} {FETCHED}"]
        subprocess.run([*command, SUITES[release], str(folder / "root"), mirror_of_debian()], check=True, timeout=900)
        (folder / "root").rename(target)
        folder.rmdir()
    return target


@dataclass
class Machine:
    """One that runs; `leader` is its systemd."""

    name: str
    root: Path
    process: subprocess.Popen[bytes]
    leader: int

    def sh(self, text: str, told: str = "", timeout: float = 900) -> str:
        """What a block of a shell prints. Raises AssertionError with everything that it said."""
        command = ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "--", "/usr/bin/env", "-i"]
        command += [
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "LANG=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive",
        ]
        line = [*command, "bash", "-euo", "pipefail", "-c", f"cd /var/tmp\n{text}"]
        done = subprocess.run(line, input=told, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, f"{self.name}: {text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def copy(self, source: Path, target: str) -> None:
        """A file of ours into the machine."""
        copied = self.root / target.lstrip("/")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copied)


@contextmanager
def machines(release: str, names: Sequence[str]) -> Iterator[dict[str, Machine]]:
    """One for each name, reachable as `<name>.example`; they and all that they wrote are taken away afterwards."""
    if why := missing():
        raise AssertionError(f"machines are needed for this, and {why}")
    lower, tag = base(release), f"wi{os.getpid() % 100000}"
    folder = Path(tempfile.mkdtemp(prefix="sw-roots-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        run("ip", "netns", "add", f"{tag}-switch")
        stack.callback(run, "ip", "netns", "del", f"{tag}-switch", check=False)
        run("ip", "-n", f"{tag}-switch", "link", "add", "br0", "type", "bridge")
        run("ip", "-n", f"{tag}-switch", "link", "set", "br0", "up")
        hosts = "127.0.0.1 localhost\n" + "".join(f"{NETWORK}.{n} {name}.example\n" for n, name in enumerate(names, 1))
        found = {}
        for number, name in enumerate(names, 1):
            space = f"{tag}-{name}"
            _wire(space, f"{tag}-switch", number)
            stack.callback(run, "ip", "netns", "del", space, check=False)
            root = _overlay(lower, folder / name)
            stack.callback(run, "umount", "--lazy", str(root), check=False)
            (root / "etc/hosts").write_text(hosts)
            (root / "etc/hostname").write_text(f"{name}\n")
            found[name] = _boot(name, root, space)
            stack.callback(_power_off, found[name])
        try:
            yield found
        except BaseException:
            for machine in found.values():
                print(machine.name, machine.sh("journalctl --no-pager -n 80 --output cat -u 'spillway*' || true"))
            raise


def _wire(space: str, switch: str, number: int) -> None:
    run("ip", "netns", "add", space)
    run("ip", "-n", switch, "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
    run("ip", "-n", switch, "link", "set", f"port{number}", "master", "br0", "up")
    run("ip", "-n", space, "link", "set", "lo", "up")
    run("ip", "-n", space, "address", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
    run("ip", "-n", space, "link", "set", "eth0", "up")


def _overlay(lower: Path, folder: Path) -> Path:
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True)
    (folder / "upper").chmod(0o755)
    options = f"lowerdir={lower},upperdir={folder}/upper,workdir={folder}/work"
    run("mount", "-t", "overlay", "overlay", "-o", options, str(folder / "root"))
    return folder / "root"


def _boot(name: str, root: Path, space: str) -> Machine:
    command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "-D", str(root), "--boot"]
    command += [f"--machine={name}", f"--network-namespace-path=/run/netns/{space}", "--console=passive"]
    # systemd 256 and later start on this hierarchy alone, whatever the host has.
    environment = os.environ | {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
    log = (root.parent / "console.log").open("wb")
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    log.close()
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children:
            machine = Machine(name, root, process, int(children[0]))
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                machine.sh("systemctl is-system-running --wait | grep -E 'running|degraded'", timeout=60)
                return machine
        time.sleep(0.2)
    process.kill()
    raise AssertionError(f"{name} does not boot: {(root.parent / 'console.log').read_text(errors='replace')[-3000:]}")


def _power_off(machine: Machine) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(machine.leader, signal.SIGRTMIN + 4)  # systemd(1): power off
    try:
        machine.process.wait(60)
    except subprocess.TimeoutExpired:
        machine.process.kill()
        machine.process.wait()
