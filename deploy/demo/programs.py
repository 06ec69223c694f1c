"""The demo's processes: every program that supervisord keeps running, with its command and environment."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from deploy.demo.config import PYTHON, ROOT, DemoConfig
from deploy.demo.secrets_file import Secrets
from deploy.demo.topology import REQUESTS, DemoNode, DemoTopology

# Started in this order and stopped in the reverse one; the members of a group go together.
GROUPS = ("machines", "nodes", "control-plane", "traffic")
# Settings of the product that whoever starts the demo may choose.
PASSED_ON = ("SPILLWAY_DATABASE_URL", "SPILLWAY_RESOLVERS", "TERRAFORM_BIN")
WEB_THREADS = 9
TEMPLATE = Path(__file__).with_name("supervisord.conf")


@dataclass(frozen=True)
class Program:
    """One supervised process; `stop_wait` seconds may pass between SIGTERM and SIGKILL."""

    name: str
    command: list[str]
    group: str
    environment: dict[str, str] = field(default_factory=dict)
    stop_wait: int = 10

    def section(self, logs: Path) -> str:
        """The `[program:…]` section; a percent sign is doubled because supervisord expands `%(…)s`."""
        settings = {
            "command": shlex.join(self.command),
            "environment": ",".join(f'{name}="{value}"' for name, value in self.environment.items()),
            "stopwaitsecs": str(self.stop_wait),
            "stdout_logfile": str(logs / f"{self.name}.log"),
        }
        lines = [f"{name} = {value.replace('%', '%%')}" for name, value in settings.items() if value]
        return "\n".join([f"[program:{self.name}]", *lines, *COMMON])


# Restart for ever: a demo (and a node) heals. The group is signalled, so that children never stay behind.
COMMON = (
    f"directory = {ROOT}".replace("%", "%%"),
    "autorestart = true",
    "startsecs = 1",
    "startretries = 1000",
    "stopasgroup = false",
    "killasgroup = true",
    "redirect_stderr = true",
    "stdout_logfile_maxbytes = 5MB",
    "stdout_logfile_backups = 1",
    "",
)


def django_environment(config: DemoConfig, secrets: Secrets) -> dict[str, str]:
    """What every process that loads Django's settings gets."""
    pki = config.demo / "pki"
    return {
        "SPILLWAY_VAR": str(config.var),
        "SPILLWAY_SECRET_KEY": secrets.secret_key,
        "SPILLWAY_TOKEN_PEPPERS": f"1:{secrets.token_pepper}",
        "SPILLWAY_REDIS_URL": f"redis://:{secrets.redis_password}@127.0.0.1:{config.redis_port}/0",
        "SPILLWAY_AGENT_CA": str(pki / "ca.pem"),
        "SPILLWAY_AGENT_CERTIFICATE": str(pki / "control-plane.pem"),
        "SPILLWAY_AGENT_KEY": str(pki / "control-plane.key"),
    } | {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}


def _tool(name: str) -> str:
    return str(Path(PYTHON).parent / name)


def _control_plane(config: DemoConfig, environment: dict[str, str]) -> Iterator[Program]:
    manage = [PYTHON, "manage.py"]
    gunicorn = [
        _tool("gunicorn"),
        "--config",
        "python:controlplane.web_server",
        "--bind",
        f"unix:{config.run}/web.sock",
    ]
    yield Program(
        "web",
        [*gunicorn, "--workers", "1", "--threads", str(WEB_THREADS), "--timeout", "60"],
        "control-plane",
        environment | {"SPILLWAY_WEB_THREADS": str(WEB_THREADS)},
    )
    events = [_tool("uvicorn"), "controlplane.events:app", "--uds", f"{config.run}/events.sock", "--no-access-log"]
    yield Program("events", [*events, "--timeout-graceful-shutdown", "1"], "control-plane", environment)
    worker = [_tool("celery"), "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "8"]
    yield Program(
        "worker", [*worker, "-Q", "default,push", "--without-mingle"], "control-plane", environment, stop_wait=20
    )
    webhooks = [_tool("celery"), "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "28"]
    webhooks += ["-Q", "webhooks,schedules,dns,clouds,verifications", "--without-mingle"]
    yield Program("webhook-worker", webhooks, "control-plane", environment, stop_wait=15)
    # Terraform for stacks: two at a time on a machine, since a plan may need a gigabyte.
    terraform = [_tool("celery"), "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "2"]
    state = {"SPILLWAY_STATE_URL": f"http://127.0.0.1:{config.console_port}"}
    yield Program(
        "terraform", [*terraform, "-Q", "terraform", "--without-mingle"], "control-plane", environment | state
    )
    loadgen = [_tool("celery"), "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "8"]
    yield Program("loadgen", [*loadgen, "-Q", "capacity", "--without-mingle"], "control-plane", environment)
    yield Program("schedule", [*manage, "schedule"], "control-plane", environment)
    yield Program("collector", [*manage, "collect"], "control-plane", environment)
    yield Program("log-collector", [*manage, "collect_logs"], "control-plane", environment)
    console = {"SPILLWAY_BIND": f"127.0.0.1:{config.console_port}", "SPILLWAY_RUN": str(config.run)}
    yield Program("console", ["haproxy", "-W", "-db", "-f", "deploy/console/haproxy.cfg"], "control-plane", console)


def agent(config: DemoConfig, node: DemoNode) -> Program:
    """The agent of one node: on a Unix socket as on one's own machine, or on HTTPS as far away."""
    state_dir = config.run / node.name
    command = [PYTHON, "-m", "apps.agent", "--name", node.name, "--state-dir", str(state_dir)]
    command += ["--address", node.address, "--port-offset", str(node.port_offset)]
    if node.url.startswith("unix://"):
        command += ["--unix", node.url.removeprefix("unix://")]
    else:
        pki = config.demo / "pki"
        command += ["--listen", node.url.removeprefix("https://"), "--ca", str(pki / "ca.pem")]
        command += ["--certificate", str(pki / f"{node.name}.pem"), "--key", str(pki / f"{node.name}.key")]
    return Program(f"agent-{node.name}", command, "nodes", stop_wait=15)


def clients(topology: DemoTopology) -> Program:
    """The steady traffic to every node of every region."""
    command = [PYTHON, "-m", "deploy.demo.client", "--port", str(topology.config.client_port)]
    for node in topology.nodes():
        command += [f"--node={node.region}={url}" for url in topology.urls_of(node)]
    command += [f"--request={request}" for request in REQUESTS]
    return Program("clients", [*command, "--rate=us-central1=4", "--rate=europe-west1=2.5"], "traffic")


def programs(topology: DemoTopology, secrets: Secrets) -> list[Program]:
    """Everything that the demo is made of."""
    config = topology.config
    found = [Program("redis", ["redis-server", str(config.demo / "redis" / "redis.conf")], "machines")]
    for server in topology.servers():
        command = [PYTHON, "-m", "deploy.demo.backend", "--port", str(server.port)]
        found.append(Program(server.name, [*command, "--name", server.name, "--region", server.region], "machines"))
    found += [agent(config, node) for node in topology.nodes()]
    found += _control_plane(config, django_environment(config, secrets))
    return [*found, clients(topology)]


def write_configuration(topology: DemoTopology, secrets: Secrets) -> None:
    """Write supervisord.conf from the template beside this file, and redis.conf; both hold secrets."""
    config = topology.config
    redis = f"bind 127.0.0.1\nport {config.redis_port}\nrequirepass {secrets.redis_password}\n"
    # Redis carries wake-ups and live samples only, so there is nothing in it to keep; a process that renames itself
    # overwrites the environment by which it is known as ours.
    redis += f'dir "{config.demo / "redis"}"\nsave ""\nappendonly no\nset-proc-title no\n'
    _private(config.demo / "redis" / "redis.conf", redis)
    head = TEMPLATE.read_text().replace("{demo}", str(config.demo)).replace("{run}", str(config.run))
    members = programs(topology, secrets)
    sections = [program.section(config.demo / "logs") for program in members]
    _private(config.supervisor_conf, "\n".join([head, *sections, *group_sections(members)]))


def group_sections(members: list[Program]) -> Iterator[str]:
    """The `[group:…]` sections: supervisord waits for one group before it stops the next."""
    for priority, group in enumerate(GROUPS, start=1):
        names = ",".join(program.name for program in members if program.group == group)
        yield f"[group:{group}]\nprograms = {names}\npriority = {priority}\n"


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)
