"""The ways in, gone to the letter of docs/operate; `make ways-in` prints how long each step took."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from uuid import uuid4

from tests.e2e.booted import Machine, machines

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "operate"
PASSWORD = "a-long-pass-phrase-9"
ROUTE, SIGN_IN = "--header 'Host: www.example.com' http://edge-1.example:8080/", "http://127.0.0.1:8000/sign-in"
NOT_OURS = "proc|sys|dev|run|tmp|var/(tmp|log|cache)|var/lib/(apt|dpkg|postgresql|redis|systemd)"


def blocks(heading: str, page: str = "install.md") -> list[str]:
    """The indented blocks below a heading of the page, as a person copies them."""
    text = (PAGES / page).read_text()
    below = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.DOTALL | re.MULTILINE)
    assert below, f"{page} has no heading {heading!r}"
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", below[1], re.MULTILINE)
    return ["\n".join(line[4:] for line in block.strip("\n").splitlines()) for block in found if block.strip()]


@dataclass
class Tried:
    """What was done, with the seconds that it took, and what else is told of it."""

    release: str
    way: str = "packages"
    steps: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Write down how long the body takes, if it ends well."""
        begun = time.monotonic()
        yield
        self.steps[name] = f"{time.monotonic() - begun:.0f} s"
        print(f"Debian {self.release}, {self.way}: {name}: {self.steps[name]}", file=sys.stderr, flush=True)

    def rows(self) -> Iterator[str]:
        """Those of the table."""
        for step, result in self.steps.items():
            yield f"| Debian {self.release} | {self.way} | {step} | {result} |"


def build(folder: Path, release: str) -> None:
    """Packages, as `make packages-debian` builds them."""
    command = [
        sys.executable,
        "-m",
        "deploy.debian",
        "--release",
        release,
        "--version",
        "0.1.0~1",
        "--out",
        str(folder),
    ]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def later(package: Path) -> Path:
    """The same package as the next version of it."""
    root = package.with_suffix(".root")
    subprocess.run(["dpkg-deb", "-R", str(package), str(root)], check=True)
    control = root / "DEBIAN" / "control"
    control.write_text(control.read_text().replace("Version: 0.1.0~1", "Version: 0.1.0~2"))
    target = package.with_name(package.name.replace("~1", "~2"))
    command = ["dpkg-deb", "-Zzstd", "-z1", "--root-owner-group", "--build", str(root), str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return target


def files_on(machine: Machine) -> set[str]:
    """Every file and folder but those that other packages keep."""
    found = machine.sh("find / -xdev -print").splitlines()
    return {path for path in found if not re.match(rf"/({NOT_OURS})(/|$)", path) and "__pycache__" not in path}


@dataclass
class Visit:
    """A console and a node, without anything of ours at first, and the packages that are installed there."""

    tried: Tried
    folder: Path
    console: Machine
    node: Machine

    def packages(self) -> list[tuple[Machine, Path]]:
        """Where which package goes."""
        return [
            (self.console, next(self.folder.glob("spillway_*~1*"))),
            (self.node, next(self.folder.glob("*agent*~1*"))),
        ]

    def install(self) -> None:
        """From nothing to a first route that answers."""
        for machine, package in self.packages():
            machine.copy(package, f"/var/tmp/{package.name.partition('_')[0]}_1.deb")
        first, start, ready, person, _ = blocks("On the console")
        install, begin = blocks("On a node")
        with self.tried.step("install the console"):
            self.console.sh(first)
        with self.tried.step("start the console until it is ready"):
            self.console.sh(start)
            self.console.sh(ready)
        self.console.sh(person, told=f"{PASSWORD}\n")
        with self.tried.step("install the agent"):
            self.node.sh(install)
        for theirs, ours in (("ca.pem", "ca.pem"), ("edge-1.pem", "agent.pem"), ("edge-1.key", "agent.key")):
            self.node.copy(self.console.root / "etc/spillway/pki" / theirs, f"/etc/spillway/{ours}")
        with self.tried.step("a first route answers"):
            self.node.sh(begin)
            self.console.sh(blocks("The first route")[0].split("\n\n")[0])
            self.served()

    def served(self, body: str = "It works.") -> None:
        """The route answers with this within a minute, from the console's machine."""
        ask = blocks("The first route")[0].split("\n\n")[1]
        end = time.monotonic() + 60
        while body not in (said := self.console.sh(ask)) and time.monotonic() < end:
            time.sleep(1)
        assert body in said

    @contextmanager
    def asked(self, request: str) -> Iterator[Counter[str]]:
        """Ask this all the time, from the console's machine; afterwards, how often each status was the answer."""
        name, found = f"/var/tmp/{uuid4().hex}", Counter[str]()
        curl = f"curl --silent --output /dev/null --max-time 60 --write-out '%{{http_code}}\n' {request}"
        loop = f"touch {name}; while [ -e {name} ]; do {curl} || true; sleep 0.1; done"
        thread = Thread(target=lambda: found.update(self.console.sh(loop).split()))
        thread.start()
        try:
            yield found
        finally:
            self.console.sh(f"rm {name}")
            thread.join()

    def upgrade(self) -> None:
        """To the next version: settings that were changed stay, and the route answers."""
        for machine, package in self.packages():
            machine.copy(later(package), f"/var/tmp/{package.name.partition('_')[0]}_2.deb")
        self.console.sh("echo '# mine' >> /etc/spillway/haproxy.cfg; md5sum /etc/spillway/environment > keys")
        with self.tried.step("back up"):
            self.console.sh(blocks("Upgrade and remove")[0], told=f"{PASSWORD}\n")
        step = "upgrade both"
        with self.asked(ROUTE) as route, self.asked(SIGN_IN) as pages, self.tried.step(step):
            self.console.sh("apt-get install -y ./spillway_2.deb")
            self.node.sh("apt-get install -y ./spillway-agent_2.deb")
            self.console.sh(blocks("On the console")[2])
        assert set(route) == {"200"}, route
        failed = pages.total() - pages["200"]
        told = f"no request of {route.total()} to the node failed, and {failed} of {pages.total()} to the console"
        self.tried.steps[step] += f"; {told}"
        self.console.sh("grep '# mine' /etc/spillway/haproxy.cfg; md5sum -c keys; rm keys")
        assert "0.1.0~2" in self.console.sh("dpkg -s spillway")
        self.served()
        self.well()

    def well(self) -> None:
        """No part of the console fails, by its own word, once every program had a moment to start."""
        self.console.sh(f"for turn in $(seq 20); do {blocks('On the console')[4]} && exit; sleep 3; done; exit 1")

    def lose(self) -> None:
        """The console and its database; a backup brings them back on an empty machine, and the node serves on."""
        self.console.sh("apt-get purge -y spillway; runuser -u postgres -- dropdb spillway")
        self.console.sh("runuser -u postgres -- dropuser spillway")
        self.served()
        empty, read, start = blocks("A console is lost", "recovery.md")
        with self.tried.step("install the console again, read the backup, start until it is ready"):
            self.console.sh("apt-get install -y ./spillway_2.deb")
            self.console.sh(empty)
            self.console.sh(read, told=f"{PASSWORD}\n")
            self.console.sh(start)
            self.console.sh(blocks("On the console")[2])
        self.console.sh(blocks("The first route")[0].split("\n\n")[0].replace("It works.", "It works again."))
        self.served("It works again.")
        self.well()
        self.console.sh("rm /root/spillway-backup")

    def purge(self) -> None:
        """Both packages, and nothing that runs is left of them."""
        with self.tried.step("purge both"):
            self.console.sh("apt-get purge -y spillway")
            self.node.sh("apt-get purge -y spillway-agent")
        assert "spillway" not in self.console.sh("cat /etc/passwd /etc/group")
        for machine in (self.console, self.node):
            assert "spillway" not in machine.sh("(cat /proc/[0-9]*/cmdline 2>/dev/null || true) | tr '\\0' ' '")


def debian(release: str) -> Tried:
    """Install, serve a first route, upgrade and purge; nothing is left but what other packages keep."""
    tried = Tried(release)
    with tempfile.TemporaryDirectory() as name, machines(release, ("console", "edge-1")) as booted:
        visit = Visit(tried, Path(name), booted["console"], booted["edge-1"])
        with tried.step("build the packages"):
            build(visit.folder, release)
        visit.console.sh("apt-get install -y -qq postgresql redis-server haproxy python3 openssl")
        visit.node.sh("apt-get install -y -qq haproxy python3 openssl")
        before = files_on(visit.console) | files_on(visit.node)
        visit.install()
        visit.upgrade()
        visit.lose()
        visit.purge()
        assert (files_on(visit.console) | files_on(visit.node)) - before == set()
    return tried
