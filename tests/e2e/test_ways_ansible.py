"""The roles for Ansible bring up a console and a node, change nothing the second time, and show no secret."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.architecture.sources import ROOT
from tests.e2e.ansible_play import ANSIBLE, TOOLS, Controller, Played, fetch_ssh, let_in, secure
from tests.e2e.booted import Machine, machines
from tests.e2e.ways_in import PASSWORD, build

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not (TOOLS / "ansible-playbook").exists(), reason="run `make var/deploy-venv/.stamp` first"),
]
RELEASE = "12"
MAIL = "smtp://mailer:a-secret-of-mail@mail.example:25"
ROUTE = [
    {
        "kind": "LoadBalancer",
        "name": "front",
        "spec": {"fleets": ["here"], "listeners": [{"name": "http", "protocol": "http", "port": 8080}]},
    },
    {
        "kind": "Route",
        "name": "home",
        "spec": {
            "load_balancer": "front",
            "hostname": "www.example.com",
            "path": "/",
            "action": {"fixed_response": {"status": 200, "body": "It works."}},
        },
    },
]
FLEET = [
    {"kind": "Region", "name": "here", "spec": {"title": "Here"}},
    {"kind": "Fleet", "name": "here", "spec": {"region": "here"}},
]


@dataclass
class Site:
    """A console and a node, what was done to them with the seconds that it took, and what `--check` left there."""

    controller: Controller
    console: Machine
    node: Machine
    variables: dict[str, Any]
    tried: dict[str, tuple[Played, float]] = field(default_factory=dict)
    left: str = ""

    def play(self, name: str, *flags: str, **variables: Any) -> Played:
        """Run the playbook and keep what it said."""
        begun = time.monotonic()
        played = self.controller.play({**self.variables, **variables}, *flags)
        self.tried[name] = (played, time.monotonic() - begun)
        print(f"{name}: {self.tried[name][1]:.0f} s\n{played.said[-6000:]}")
        return played

    def settings(self) -> str:
        """The file, as it is now."""
        return self.console.sh("cat /etc/spillway/environment")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Machines that Ansible reaches, looked at with `--check` and then brought up."""
    folder = tmp_path_factory.mktemp("ansible")
    fetch_ssh(RELEASE)
    build(folder, RELEASE)
    secure(folder)
    variables = {
        "spillway_console_package": str(next(folder.glob("spillway_*.deb"))),
        "spillway_console_tls_file": str(folder / "tls.pem"),
        "spillway_console_ca_file": str(folder / "ca.pem"),
        "spillway_console_settings": {
            "SPILLWAY_ALLOWED_HOSTS": "console.example,127.0.0.1,localhost",
            "SPILLWAY_ORIGINS": "https://console.example",
            "SPILLWAY_STATE_URL": "https://console.example",
        },
        "spillway_console_secret_settings": {"SPILLWAY_EMAIL_URL": MAIL},
        "spillway_console_operator_password": PASSWORD,
        "spillway_console_objects": [*FLEET, *ROUTE],
        "spillway_agent_package": str(next(folder.glob("spillway-agent_*.deb"))),
        "spillway_agent_fleet": "here",
        "spillway_agent_console_url": "https://console.example",
    }
    with machines(RELEASE, ("console", "edge-1")) as booted:
        for machine in booted.values():
            let_in(machine, folder)
        found = Site(Controller(folder, booted["console"]), booted["console"], booted["edge-1"], variables)
        found.play("check on empty machines", "--check")
        found.left = found.console.sh("ls /usr/lib /etc")
        found.play("the first run", "-vvv")
        yield found


def test_a_check_on_empty_machines_says_what_would_be_done_and_does_nothing(site: Site) -> None:
    previewed, _ = site.tried["check on empty machines"]
    assert previewed.code == 0
    assert "spillway" not in site.left


def test_roles_go_from_nothing_to_a_route_and_then_change_nothing(site: Site) -> None:
    made, _ = site.tried["the first run"]
    assert made.code == 0
    assert all(count > 0 for count in made.changed.values())
    answer = "curl -sS --fail --retry 60 --retry-delay 2 --retry-all-errors -H 'Host: www.example.com' http://edge-1.example:8080/"
    assert "It works." in site.console.sh(answer)
    secrets = (PASSWORD, "a-secret-of-mail", "sne_", (site.controller.folder / "tls.key").read_text().splitlines()[1])
    assert [secret for secret in secrets if secret in made.said] == []
    keys = [
        line.partition("=")[2]
        for line in site.settings().splitlines()
        if line.startswith(("SPILLWAY_SECRET", "SPILLWAY_TOKEN"))
    ]
    assert [key for key in keys if key in made.said] == []

    assert site.play("the second run").changed == {"console": 0, "edge-1": 0}


def test_check_says_what_a_change_would_do_and_does_nothing(site: Site) -> None:
    before = site.settings()
    wanted = {**site.variables["spillway_console_settings"], "SPILLWAY_LOG_LEVEL": "WARNING"}
    previewed = site.play("check of a change", "--check", spillway_console_settings=wanted)
    assert (previewed.code, site.settings()) == (0, before)
    assert previewed.changed["console"] > 0
    assert previewed.changed["edge-1"] == 0


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SPILLWAY_LOGS_URL", "s3:/lines", "Set SPILLWAY_LOGS_URL to a URL"),
        ("SPILLWAY_ALOWED_HOSTS", "console.example", "SPILLWAY_ALOWED_HOSTS"),
        (
            "SPILLWAY_EMAIL_FROM",
            "a@b.example\nSPILLWAY_DEBUG=1",
            "Set each of these to a text of one line: SPILLWAY_EMAIL_FROM",
        ),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_written(site: Site, name: str, value: str, said: str) -> None:
    before = site.settings()
    wanted = {**site.variables["spillway_console_settings"], name: value}
    refused = site.play(f"a wrong {name}", "--limit", "console", spillway_console_settings=wanted)
    assert refused.code != 0
    assert said in refused.said
    assert site.settings() == before


def test_the_roles_pass_the_linter_as_for_production() -> None:
    command = [str(TOOLS / "ansible-lint"), "--offline", "--nocolor", "--profile", "production"]
    given = {"PATH": f"{TOOLS}:/usr/bin:/bin", "HOME": str(ROOT / "var"), "LANG": "C.UTF-8"}
    done = subprocess.run(command, cwd=ANSIBLE, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
