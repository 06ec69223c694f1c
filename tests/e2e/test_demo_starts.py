"""The demo's programs start as supervisord is told, but for those that only load Django once more.

The whole demo, with its database and its traffic, is in `test_demo_up`.
"""

from __future__ import annotations

import re
import tempfile
import xmlrpc.client
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import redis
from django.core.management import call_command
from supervisor.xmlrpc import SupervisorTransport

from apps.drivers.proxy.contract import NodeTarget, Unreachable
from apps.drivers.proxy.registry import open_driver
from deploy.demo.programs import programs, write_configuration
from deploy.demo.ready import call
from deploy.demo.secrets_file import Secrets, read_or_create
from deploy.demo.supervision import processes, start, stop
from deploy.demo.topology import DemoNode, DemoTopology
from deploy.demo.traffic import traffic_of
from tests.e2e.demo import free_config, until

pytestmark = pytest.mark.e2e
# Each of these costs two seconds of a processor; one that serves pages stands for all.
LEFT_OUT = ("events", "worker", "webhook-worker", "terraform", "loadgen", "schedule", "collector", "log-collector")


@pytest.fixture
def topology() -> Iterator[DemoTopology]:
    """A demo with keys and nothing in its database."""
    with tempfile.TemporaryDirectory(prefix="spillway-") as directory:
        config = free_config(Path(directory))
        config.make_directories()
        found = DemoTopology(config)
        try:
            yield found
        finally:
            stop(config)


def configure(topology: DemoTopology, secrets: Secrets) -> None:
    """As `up` does, with some programs that wait to be asked for."""
    remote = [node.name for node in topology.nodes() if node.url.startswith("https://")]
    call_command("issue_certificates", out=topology.config.demo / "pki", name=remote, verbosity=0)
    write_configuration(topology, secrets)
    text = topology.config.supervisor_conf.read_text()
    text, count = re.subn(rf"(\[program:(?:{'|'.join(LEFT_OUT)})\]\n)", r"\1autostart = false\n", text)
    assert count == len(LEFT_OUT)
    topology.config.supervisor_conf.write_text(text)


def states(topology: DemoTopology) -> dict[str, str]:
    """What supervisord says of each program; empty before it answers."""
    transport = SupervisorTransport(serverurl=f"unix://{topology.config.run}/supervisor.sock")
    try:
        found = xmlrpc.client.ServerProxy("http://supervisor", transport).supervisor.getAllProcessInfo()
    except OSError:
        return {}
    assert isinstance(found, list)
    return {str(each["name"]): str(each["statename"]) for each in found}


def answers(topology: DemoTopology, node: DemoNode) -> bool:
    """Whether the agent hears the control plane, over its socket or by its certificate."""
    pki = topology.config.demo / "pki"
    keys = [str(pki / name) for name in ("ca.pem", "control-plane.pem", "control-plane.key")]
    try:
        open_driver(NodeTarget(node.name, node.url, *keys)).read_state()
    except Unreachable:
        return False
    return True


def test_every_program_starts_and_none_is_left_behind(topology: DemoTopology) -> None:
    secrets = read_or_create(topology.config.demo / "secrets.json")
    configure(topology, secrets)
    wanted = {each.name: "STOPPED" if each.name in LEFT_OUT else "RUNNING" for each in programs(topology, secrets)}
    supervisor = start(topology.config)
    assert until(lambda: states(topology) == wanted), states(topology)
    for node in topology.nodes():
        assert until(partial(answers, topology, node)), node
    for server in topology.servers():
        assert call(f"http://127.0.0.1:{server.port}/healthz")[0] == 200, server
    assert set(traffic_of(topology.config)) == {node.region for node in topology.nodes()}
    assert redis.Redis(port=topology.config.redis_port, password=secrets.redis_password).ping()
    assert until(lambda: call(f"{topology.config.console_url}/healthz")[0] == 200)
    assert stop(topology.config)
    assert processes(topology.config) == []
    supervisor.wait(10)
