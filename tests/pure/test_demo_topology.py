"""The demo's environment: ports move together, nothing is left at a default, the document stays the tutorial's."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.demo.config import PORTS, ROOT, DemoConfig, remember, running
from deploy.demo.programs import Program, write_configuration
from deploy.demo.ready import shell
from deploy.demo.secrets_file import read_or_create
from deploy.demo.supervision import haproxies_of
from deploy.demo.topology import DemoTopology


@pytest.fixture
def config(tmp_path: Path) -> Iterator[DemoConfig]:
    made = DemoConfig(var=tmp_path / "var", http_port=18080, backend_port=19100, agent_port=19440, overflow_port=19700)
    yield made
    shutil.rmtree(made.run, ignore_errors=True)  # below /tmp where the test's own directory is too deep for sockets


def test_ports_that_meet_are_named_before_anything_starts(config: DemoConfig) -> None:
    meets = replace(config, agent_port=config.backend_port + 100)
    with pytest.raises(SystemExit, match=r"Port 19201 would be for the agent of eu-2 and for server eu-vm-1"):
        DemoTopology(meets).ports()


def test_the_tutorial_has_two_regions_two_nodes_and_three_servers_each(config: DemoConfig) -> None:
    topology = DemoTopology(config)
    assert [(node.name, node.region) for node in topology.nodes()] == [
        ("us-1", "us-central1"),
        ("us-2", "us-central1"),
        ("eu-1", "europe-west1"),
        ("eu-2", "europe-west1"),
    ]
    assert [server.region for server in topology.servers()] == ["us-central1"] * 3 + ["europe-west1"] * 3


def test_listeners_servers_and_agents_move_with_their_environment_variables(config: DemoConfig) -> None:
    topology = DemoTopology(config)
    assert [topology.urls_of(node)[0] for node in topology.nodes()] == [
        f"http://127.0.0.1:{port}" for port in (18080, 18180, 18280, 18380)
    ]
    assert [server.port for server in topology.servers()] == [19101, 19102, 19103, 19201, 19202, 19203]
    assert [node.url for node in topology.nodes()[2:]] == ["https://127.0.0.1:19440", "https://127.0.0.1:19441"]


def test_every_port_of_the_demo_is_named_once(config: DemoConfig) -> None:
    assert len(DemoTopology(config).ports()) == 3 + 4 + 2 + 6 + 4 * 3


def test_the_ports_of_nodes_among_themselves_move_and_each_node_has_its_own(config: DemoConfig) -> None:
    topology = DemoTopology(config)
    taken = {port: what for port, what in topology.ports().items() if "of node" in what}
    assert sorted(taken) == [base + port for base in (19700, 19800, 19900, 20000) for port in (0, 1, 2)]
    assert taken[19901] == "overflow of node eu-1"
    fleets = [fleet["spec"] for fleet in topology.objects("Fleet")]
    assert {fleet["peer_port"] for fleet in fleets} == {19700}


def test_demos_a_few_ports_apart_do_not_meet(tmp_path: Path) -> None:
    def ports(base: int) -> set[int]:
        ports = (base, base + 1, base + 400, base + 2, base + 4, base + 5, base + 6)
        return set(DemoTopology(DemoConfig(tmp_path, *ports)).ports())

    assert len(ports(12_000)) == 27
    assert not ports(12_000) & ports(12_010)


def test_a_deep_directory_gets_its_sockets_in_a_short_private_one(tmp_path: Path) -> None:
    deep = DemoConfig(var=tmp_path / ("deep" * 20))
    assert len(str(deep.run)) < 52
    assert deep.run != DemoConfig(var=tmp_path / ("other" * 20)).run


def test_a_port_that_is_no_port_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPILLWAY_PORT", "80 80")
    with pytest.raises(SystemExit, match="SPILLWAY_PORT"):
        DemoConfig()


def test_secrets_are_made_once_and_readable_by_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    first = read_or_create(path)
    assert read_or_create(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_create(tmp_path / "other.json").password != first.password
    assert len(set(json.loads(path.read_text()).values())) == 5


def test_the_files_that_hold_secrets_are_readable_by_the_owner_alone(config: DemoConfig) -> None:
    config.make_directories()
    write_configuration(DemoTopology(config), read_or_create(config.demo / "secrets.json"))
    for path in (config.supervisor_conf, config.demo / "redis" / "redis.conf"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_percent_sign_in_a_command_survives_supervisord(tmp_path: Path) -> None:
    section = Program("a", ["run", "100%"], "nodes").section(tmp_path)
    assert "command = run 100%%\n" in section


def test_commands_without_its_variables_reach_the_copy_that_was_started(
    config: DemoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in PORTS.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SPILLWAY_VAR", str(config.var))
    assert running().client_port == DemoConfig().client_port  # control: nothing is known of a copy that never ran
    config.make_directories()
    remember(replace(config, client_port=29190))
    assert (running().client_port, running().http_port) == (29190, 18080)
    monkeypatch.setenv("SPILLWAY_CLIENT_PORT", "31000")
    assert running().client_port == 31000


def pasted_commands() -> str:
    """The blocks that people paste of README and of the pages for newcomers."""
    pages = [ROOT / "README.md", *(path for path in ROOT.glob("docs/start/*.md") if path.name != "demo.md")]
    lines = [line for page in pages for line in page.read_text().splitlines()]
    return "\n".join(line for line in lines if line.startswith("    "))


def test_pasted_commands_name_no_port_and_no_process_of_another_copy(config: DemoConfig) -> None:
    commands = pasted_commands()
    assert not re.search(r"127\.0\.0\.1:(?!5353)\d+|localhost:\d+|pgrep|pkill|killall", commands)
    known = set(re.findall(r"^export (\w+)=", shell(DemoTopology(config), {"operator_token": "t"}), re.MULTILINE))
    set_by_hand = set(re.findall(r"^ *(\w+)=", commands, re.MULTILINE))
    used = set(re.findall(r"\$(\w+)", commands))
    assert used - known - set_by_hand - {"PWD"} == set()
    assert {"SPILLWAY_URL", "SPILLWAY_TOKEN", "FIRST_NODE"} <= used  # control: they are read


def test_a_killed_haproxy_is_one_of_this_copy_and_of_this_node(config: DemoConfig) -> None:
    own = f"{config.run}/eu-1/live/haproxy.cfg".encode()
    assert haproxies_of(config, "eu-1") == []
    fake = subprocess.Popen(["haproxy", "-c", "import time; time.sleep(30)", own], executable=sys.executable)
    try:
        until = time.monotonic() + 5
        while haproxies_of(config, "eu-1") != [fake.pid] and time.monotonic() < until:
            time.sleep(0.01)
        assert haproxies_of(config, "eu-1") == [fake.pid]
        assert haproxies_of(config, "eu-2") == []
    finally:
        fake.kill()
        fake.wait()
