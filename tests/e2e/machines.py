"""Five machines in network namespaces: consoles a and b, PostgreSQL and Redis on c, nodes d and e.

Every process is the product's own, started as the units in deploy/systemd start it. A cable that is pulled tells
nobody: what was sent is lost and no connection is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime as dt
import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from apps.fleet import pki
from deploy.release import migrations
from tests.e2e.address_env import missing_here, run
from tests.e2e.installation import ROOT, wait_until
from tests.servers import as_user, postgresql_bin

T = TypeVar("T")
NUMBERS = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
CONSOLES, NODES = ("a", "b"), ("d", "e")
BRIDGE = 254
HOST = "www.example.org"
CLONE_NEWNET = 0x40000000
TOOLS = Path(sys.executable).parent
WEB_THREADS = 5
AGENT_PORT, HTTP_PORT, CONSOLE_PORT, EVENTS_PORT = 9443, 8080, 8000, 8001
PROGRAMS: dict[str, Callable[[str, Path], list[str]]] = {
    "web": lambda at, tree: [
        *(str(TOOLS / "gunicorn"), *_application(tree), "--bind", f"{at}:{CONSOLE_PORT}"),
        *("--workers", "2", "--threads", str(WEB_THREADS)),
    ],
    "worker": lambda *_: [
        *(str(TOOLS / "celery"), "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "8"),
        *("-Q", "default,push", "--without-mingle"),
    ],
    "schedule": lambda *_: [sys.executable, "manage.py", "schedule"],
    "collect": lambda *_: [sys.executable, "manage.py", "collect"],
}


def _application(tree: Path) -> list[str]:
    """What gunicorn serves; releases before this one did not say how."""
    says_how = (tree / "controlplane" / "web_server.py").exists()
    return ["--config", "python:controlplane.web_server"] if says_how else ["controlplane.wsgi:application"]


def events(at: str) -> list[str]:
    """The event stream of a console."""
    return [str(TOOLS / "uvicorn"), "controlplane.events:app", "--host", at, "--port", str(EVENTS_PORT)]


def missing() -> str:
    """Why this machine cannot have five; empty when it can."""
    return missing_here("haproxy", "redis-server")


def clock_off(seconds: int) -> dict[str, str]:
    """The environment of a program whose clock is off by so much."""
    return {"PYTHONPATH": str(ROOT / "tests" / "e2e" / "other_clock"), "CLOCK_OFF_S": str(seconds)}


def address(name: str) -> str:
    """Of a machine, or of the switch."""
    return f"10.78.0.{BRIDGE if name == 'x' else NUMBERS[name]}"


@dataclass(frozen=True)
class Answer:
    """Of one request; status 0 when nobody answered. `seconds` is how long it took."""

    status: int
    headers: Mapping[str, str]
    text: str
    seconds: float

    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)


class Machines:
    """All five, and hands to pull cables, stop programs and set clocks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tag = f"sw{os.getpid() % 100000}"
        self.processes: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        self.token = ""
        # What the settings of every console say otherwise than they do at first.
        self.told: dict[str, str] = {}
        self.database_at = "c"
        self.fleets: Mapping[str, str] = dict.fromkeys(NODES, "here")
        # Which release a machine runs; the others run this one.
        self.trees: dict[str, Path] = {}
        self._outside = ThreadPoolExecutor(16, initializer=_enter, initargs=(self.space("x"),))

    # Cables

    def space(self, name: str) -> str:
        """The namespace of a machine; x has the switch between them, and whoever asks."""
        return f"{self.tag}-{name}"

    def lay_cables(self) -> None:
        """A switch, and a cable from each machine to it."""
        run("ip", "netns", "add", self.space("x"))
        self._ip("x", "link set lo up")
        self._ip("x", "link add br0 type bridge")
        self._ip("x", "link set br0 up")
        self._ip("x", f"address add 10.78.0.{BRIDGE}/24 dev br0")
        for name in NUMBERS:
            run("ip", "netns", "add", self.space(name))
            self._ip(name, "link set lo up")
            self._ip("x", f"link add port-{name} type veth peer name eth0 netns {self.space(name)}")
            self._ip("x", f"link set port-{name} master br0 up")
            self._ip(name, f"address add {address(name)}/24 dev eth0")
            self._ip(name, "link set eth0 up")

    def _ip(self, name: str, words: str) -> None:
        run("ip", "-n", self.space(name), *words.split())

    def unplug(self, name: str) -> None:
        """Pull the cable of a machine."""
        self._ip("x", f"link set port-{name} down")

    def plug(self, name: str) -> None:
        """Put it in again."""
        self._ip("x", f"link set port-{name} up")

    # Programs

    def start(self, machine: str, name: str, command: list[str], **environment: str) -> None:
        """Start a program on a machine, with the product's settings."""
        line = ["ip", "netns", "exec", self.space(machine), *command]
        with (self.folder / f"{machine}-{name}.log").open("ab") as log:
            settings = self.environment(machine) | environment
            tree = self.trees.get(machine, ROOT)
            self.processes[machine, name] = subprocess.Popen(line, cwd=tree, env=settings, stdout=log, stderr=log)

    def stop(self, machine: str, name: str, number: int = signal.SIGTERM) -> None:
        """End it."""
        self.processes[machine, name].send_signal(number)
        self._wait_for_end(machine, name)

    def _wait_for_end(self, machine: str, name: str) -> None:
        process = self.processes.pop((machine, name))
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def lose(self, machine: str) -> None:
        """Everything on it ends at once, as without power."""
        for pid in run("ip", "netns", "pids", self.space(machine)).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        for at, name in list(self.processes):
            if at == machine:
                self.processes.pop((at, name)).wait()

    def environment(self, machine: str) -> dict[str, str]:
        """What every process that loads Django's settings gets."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPILLWAY_", "CELERY_", "DJANGO_", "PYTEST"))}
        ours = {
            "SPILLWAY_VAR": str(self.folder / f"var-{machine}"),
            "SPILLWAY_SECRET_KEY": "first-" + "k" * 50,
            "SPILLWAY_TOKEN_PEPPERS": "1:" + "p" * 50,
            "SPILLWAY_ALLOWED_HOSTS": "*",
            "SPILLWAY_DATABASE_URL": f"postgresql://spillway@{address('c')}:5432/spillway",
            "SPILLWAY_REDIS_URL": f"redis://{address('c')}:6379/0",
            "SPILLWAY_WEB_THREADS": str(WEB_THREADS),
            "SPILLWAY_API_RATE_LIMITS": "off",
            "SPILLWAY_AGENT_CA": str(self.folder / "ca.pem"),
            "SPILLWAY_AGENT_CERTIFICATE": str(self.folder / "console.pem"),
            "SPILLWAY_AGENT_KEY": str(self.folder / "console-key.pem"),
        }
        return kept | ours | self.told

    def start_console(self, machine: str, *names: str, **environment: str) -> None:
        """Its programs, or some of them."""
        (self.folder / f"var-{machine}").mkdir(exist_ok=True)
        for name in names or PROGRAMS:
            self.start(machine, name, PROGRAMS[name](address(machine), self.trees.get(machine, ROOT)), **environment)

    def stop_console(self, machine: str, *names: str) -> None:
        """The same programs, all at once."""
        for name in names or PROGRAMS:
            self.processes[machine, name].terminate()
        for name in names or PROGRAMS:
            self._wait_for_end(machine, name)

    def restart_consoles(self, **told: str) -> None:
        """Both with other settings."""
        self.told.update(told)
        for name in CONSOLES:
            self.stop_console(name)
        for name in CONSOLES:
            self.start_console(name)
        for name in CONSOLES:
            wait_until(lambda: self.ready(name), f"console {name} is ready")  # noqa: B023 - called at once

    def start_agent(self, machine: str, **environment: str) -> None:
        """The agent of a node."""
        pair = ["--certificate", f"{self.folder}/{machine}.pem", "--key", f"{self.folder}/{machine}-key.pem"]
        command = [sys.executable, "-m", "apps.agent", "--name", machine, "--address", address(machine)]
        command += ["--state-dir", str(self.state_dir(machine)), "--ca", f"{self.folder}/ca.pem", *pair]
        command += ["--listen", f"{address(machine)}:{AGENT_PORT}", "--leave-running", "--reload-gap", "0"]
        self.start(machine, "agent", command, **environment)

    def state_dir(self, machine: str) -> Path:
        """Of a node's agent."""
        return self.folder / machine

    def start_redis(self) -> None:
        """Redis on c."""
        words = ["--bind", address("c"), "--protected-mode", "no", "--save", "", "--dir", str(self.folder)]
        self.start("c", "redis", ["redis-server", *words])

    def postgresql(self, *action: str, at: str = "c") -> None:
        """PostgreSQL on a machine: start, stop or promote, as pg_ctl says it."""
        data = self.cluster(at)
        control = [*as_user()[0], str(postgresql_bin() / "pg_ctl"), "-D", str(data), "-l", str(data.parent / "log")]
        line = ["ip", "netns", "exec", self.space(at), *control, "-w", *action]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL, cwd=data.parent)

    def cluster(self, at: str) -> Path:
        """The folder of what PostgreSQL keeps on a machine."""
        return self.folder / f"pg-{at}" / "data"

    def make_database(self) -> None:
        """A cluster that the other machines reach, with every migration and the operator's token."""
        prefix, user = as_user()
        home = self.cluster("c").parent
        home.mkdir()
        shutil.chown(home, user)
        initdb = [*prefix, str(postgresql_bin() / "initdb"), "-D", str(home / "data"), "-U", "spillway", "-A", "trust"]
        subprocess.run([*initdb, "--no-sync", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL, cwd=home)
        with (home / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.78.0.0/24 trust\n")
        with (home / "data" / "postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses='{address('c')}'\nunix_socket_directories=''\nfsync=off\n")
        self.postgresql("start")
        self.sql("CREATE DATABASE spillway", database="postgres")
        self._make_tables()
        self.token = json.loads(self.manage("a", "bootstrap", "--tokens", told="a-long-pass-phrase-9\n"))[
            "operator_token"
        ]

    def _make_tables(self) -> None:
        """As `migrate` makes them; what came of it is kept for the next time."""
        tree = self.trees.get("a", ROOT)
        said = (tree / "requirements.txt").read_text() + json.dumps(migrations(tree))
        kept = ROOT / "var" / "tables" / f"{hashlib.sha256(said.encode()).hexdigest()}.sql"

        def at_the_database(program: str, file: Path) -> None:
            words = [program, "-h", address("c"), "-U", "spillway", "-f", str(file), "spillway"]
            line = ["ip", "netns", "exec", self.space("x"), *words]
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL, timeout=300)

        if kept.exists():
            at_the_database("psql", kept)
            return
        self.manage("a", "migrate", "--verbosity", "0")
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(f".{os.getpid()}")
        at_the_database("pg_dump", new)
        new.rename(kept)

    def manage(self, machine: str, *words: str, told: str = "") -> str:
        """`manage.py` on a console."""
        return self._run(machine, [sys.executable, "manage.py", *words], told)

    def admin(self, machine: str, *words: str, codes: Sequence[int] = (0,)) -> str:
        """`spillway-admin` on a console, with the file of settings that `settings_file` names."""
        return self._run(machine, self.admin_command(machine, *words), codes=codes)

    def admin_command(self, machine: str, *words: str) -> list[str]:
        """The same, to be started."""
        environment = ["--environment", str(self.settings_file(machine))]
        return [sys.executable, "-m", "controlplane.admin", *environment, *words]

    def settings_file(self, machine: str) -> Path:
        """Of a console; nobody makes it but a restore, and processes have their settings in their environment."""
        return self.folder / f"etc-{machine}" / "environment"

    def _run(self, machine: str, command: list[str], told: str = "", codes: Sequence[int] = (0,)) -> str:
        (self.folder / f"var-{machine}").mkdir(exist_ok=True)
        done = subprocess.run(
            ["ip", "netns", "exec", self.space(machine), *command],
            cwd=self.trees.get(machine, ROOT),
            env=self.environment(machine),
            input=told,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in codes, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    # Questions

    def sql(self, statement: str, database: str = "spillway", at: str = "") -> list[tuple[Any, ...]]:
        """A statement, asked from outside."""

        def ask() -> list[tuple[Any, ...]]:
            dsn = f"postgresql://spillway@{address(at or self.database_at)}/{database}"
            with psycopg.connect(dsn, autocommit=True) as connection:
                found = connection.execute(statement.encode())
                return found.fetchall() if found.description else []

        return self.outside(ask)

    def outside(self, work: Callable[[], T]) -> T:
        """Something done from outside, at the switch."""
        return self._outside.submit(work).result()

    def ask(self, url: str, method: str = "GET", body: Any = None, timeout: float = 30, **headers: str) -> Answer:
        """One request from outside; `url` is `a/healthz`."""
        return self._outside.submit(_ask, url, method, body, timeout, headers).result()

    def api(self, machine: str, path: str, method: str = "GET", body: Any = None, timeout: float = 30) -> Answer:
        """One request to a console's API, as the operator."""
        bearer = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        return self.ask(f"{machine}/api/v1/{path}", method, body, timeout, **bearer)

    def write(self, machine: str, text: str, timeout: float = 30) -> Answer:
        """The route that everybody asks for answers with this text from now on."""
        action = {"fixed_response": {"status": 200, "body": text}}
        spec = {"load_balancer": "front", "hostname": HOST, "path": "/", "action": action}
        document = {"objects": [{"kind": "Route", "name": "home", "spec": spec}]}
        return self.api(machine, "apply", "PUT", document, timeout)

    def serves(self, node: str, text: str) -> bool:
        """Whether a node answers with it."""
        answer = self.ask(f"{node}/", timeout=5, host=HOST)
        return (answer.status, answer.text) == (200, text)

    def served(self, text: str, *nodes: str) -> float:
        """Wait until all nodes, or these, answer with it; the seconds that it took."""
        return wait_until(lambda: all(self.serves(node, text) for node in nodes or NODES), f"{text} is served")

    def ready(self, machine: str) -> bool:
        """Whether the console says so."""
        return self.ask(f"{machine}/readyz").status == 200

    # The whole

    def set_up(self) -> None:
        """Everything runs, and both nodes answer the first route."""
        self.lay_cables()
        self._issue()
        self.start_redis()
        self.make_database()
        for name in NODES:
            self.start_agent(name)
        for name in CONSOLES:
            self.start_console(name)
        for name in CONSOLES:
            wait_until(lambda: self.ready(name), f"console {name} is ready")  # noqa: B023 - called at once
        answer = self.api("a", "apply", "PUT", {"objects": document(self.fleets)})
        assert answer.status in (200, 201, 202), answer.text
        assert self.write("a", "first").status in (200, 201, 202)
        self.served("first")

    def _issue(self) -> None:
        moment = dt.datetime.now(dt.UTC)
        authority = pki.make_authority(moment)
        pairs = {"ca": authority, "console": pki.issue(authority, "control-plane", client=True, now=moment)}
        pairs |= {name: pki.issue(authority, name, client=False, now=moment) for name in NODES}
        for name, pair in pairs.items():
            (self.folder / f"{name}.pem").write_bytes(pair.certificate)
            (self.folder / f"{name}-key.pem").write_bytes(pair.key)

    def tear_down(self) -> None:
        """End everything that runs in the namespaces, and them."""
        for name in (*NUMBERS, "x"):
            for _ in range(100):
                pids = run("ip", "netns", "pids", self.space(name), check=False).stdout.split()
                if not [pid for pid in pids if int(pid) != os.getpid()]:
                    break
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                for process in self.processes.values():
                    process.poll()
                time.sleep(0.05)
            run("ip", "netns", "del", self.space(name), check=False)
        self._outside.shutdown()

    def log(self, machine: str, program: str) -> str:
        """What one program said."""
        return (self.folder / f"{machine}-{program}.log").read_text()

    def logs(self) -> str:
        """The end of what every program said."""
        return "\n".join(f"{path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))


def document(fleets: Mapping[str, str]) -> list[dict[str, Any]]:
    """The nodes with their fleets, a region for each fleet, and a load balancer on all of them."""
    nodes = [
        {
            "kind": "Node",
            "name": name,
            "spec": {"fleet": fleet, "url": f"https://{address(name)}:{AGENT_PORT}", "address": address(name)},
        }
        for name, fleet in fleets.items()
    ]
    listener = {"name": "http", "protocol": "http", "port": HTTP_PORT}
    names = sorted(set(fleets.values()))
    return [
        *({"kind": "Region", "name": name, "spec": {"title": name}} for name in names),
        *({"kind": "Fleet", "name": name, "spec": {"region": name}} for name in names),
        *nodes,
        {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": names, "listeners": [listener]}},
    ]


def _enter(space: str) -> None:
    """This thread lives in a network namespace from now on: its sockets are opened there (setns(2))."""
    library = ctypes.CDLL(None, use_errno=True)
    with Path(f"/run/netns/{space}").open() as there:
        assert library.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


def _ask(url: str, method: str, body: Any, timeout: float, headers: dict[str, str]) -> Answer:
    name, _, path = url.partition("/")
    port = HTTP_PORT if name in NODES else CONSOLE_PORT
    began = time.monotonic()
    connection = http.client.HTTPConnection(address(name), port, timeout=timeout)
    try:
        connection.request(method, f"/{path}", None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode()
        found = {key.lower(): value for key, value in response.getheaders()}
        return Answer(response.status, found, text, time.monotonic() - began)
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, {}, str(error), time.monotonic() - began)
    finally:
        connection.close()


@contextmanager
def five_machines(
    trees: Mapping[str, Path] | None = None, fleets: Mapping[str, str] | None = None
) -> Iterator[Machines]:
    """All of them, taken away afterwards with everything in them.

    `trees` says which release machines begin with, `fleets` of which fleet each node is.
    """
    if why := missing():
        raise AssertionError(f"five machines are needed for this, and {why}")
    folder = Path(tempfile.mkdtemp(prefix="sw-"))
    folder.chmod(0o755)
    machines = Machines(folder)
    machines.trees.update(trees or {})
    machines.fleets = fleets or machines.fleets
    try:
        machines.set_up()
        yield machines
    except BaseException:
        print(machines.logs())
        raise
    finally:
        machines.tear_down()
        shutil.rmtree(folder, ignore_errors=True)
