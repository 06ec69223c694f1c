"""The command line end to end: its wheel in a fresh environment, against the console over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from apps.accounts.bootstrap import replace_token
from apps.accounts.models import Account
from tests.conftest import actor_of

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "deploy" / "examples" / "tutorial.yaml"
ROUTES = """\
objects:
  - kind: Route
    name: hello
    spec:
      load_balancer: front
      hostname: shop.acme.example
      path: /hello
      action:
        fixed_response: {status: 200, body: "hello"}
"""
Ran = subprocess.CompletedProcess[str]
Spillway = Callable[..., Ran]


@dataclass(frozen=True)
class Console:
    """A console that runs, and the tokens of its operator and of the customer acme."""

    url: str
    operator: str
    acme: str


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`spillway` as pip installs it from the tree, in an environment that has nothing else."""
    folder = tmp_path_factory.mktemp("command")
    tree = folder / "tree"
    shutil.copytree(ROOT / "apps" / "cli" / "client", tree / "apps" / "cli" / "client")
    shutil.copy(ROOT / "pyproject.toml", tree)
    # The build tools are those of the lock, so that nothing is fetched.
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", str(folder), str(tree)], check=True)
    (wheel,) = folder.glob("spillway-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    into = [sys.executable, "-m", "pip", "--python", str(folder / "venv" / "bin" / "python"), "install", "-q"]
    subprocess.run([*into, "--no-index", str(wheel)], check=True)
    return folder / "venv" / "bin" / "spillway"


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all tests of this module."""


@pytest.fixture(scope="module")
def console(db: None) -> Iterator[Console]:
    """The console in threads of this process, with the tutorial's environment."""
    operator, acme = actor_of("operator", Account.Kind.OPERATOR), actor_of("acme", Account.Kind.CUSTOMER)
    tokens = [replace_token(account=actor.account, name="bootstrap") for actor in (operator, acme)]
    server = LiveServer("127.0.0.1")
    try:
        found = Console(server.url, *tokens)
        headers = {"Authorization": f"Bearer {found.operator}", "Content-Type": "application/yaml"}
        url = f"{found.url}/api/v1/apply"
        call = urllib.request.Request(url, TUTORIAL.read_bytes(), headers, method="PUT")  # noqa: S310 - it is ours
        urllib.request.urlopen(call, timeout=120).close()  # noqa: S310 - it is ours
        yield found
    finally:
        server.stop()


@pytest.fixture
def spillway(command: Path, console: Console, tmp_path: Path) -> Spillway:
    """Run the command as acme's pipeline does; the token comes by the environment."""

    def run(*words: str, stdin: str | None = None, **more: str) -> Ran:
        environment = {"SPILLWAY_URL": console.url, "SPILLWAY_TOKEN": console.acme, "PATH": os.defpath} | more
        # Without the tree in sight: what runs is what was installed.
        words = (str(command), *words)
        return subprocess.run(
            words, check=False, cwd=tmp_path, env=environment, input=stdin, text=True, capture_output=True
        )

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of one route, and nothing of it in the console."""
    path = tmp_path / "routes.yaml"
    path.write_text(ROUTES)
    return path


KEPT = ("--manager", "shop", "--prune")


def test_a_pipeline_plans_applies_exactly_that_and_then_has_nothing_to_do(spillway: Spillway, file: Path) -> None:
    planned = spillway("plan", "-f", str(file), *KEPT, "--output", "json")
    assert planned.returncode == 2, planned.stderr
    plan = json.loads(planned.stdout)
    assert plan["counts"]["create"] == 1

    origin = ("--reason", "a greeting für alle", "--commit", "a" * 40, "--pipeline-url", "https://ci.example/7")
    applied = spillway("apply", "--plan", plan["plan_id"], *origin)
    assert applied.returncode == 0, applied.stderr
    assert "+ Route acme/hello" in applied.stdout

    again = spillway("plan", "-f", str(file), *KEPT)
    assert (again.returncode, again.stdout) == (0, "Nothing to do: everything is as the file says.\n")

    entry = json.loads(spillway("logs", "--kind", "Route", "--limit", "1", "--output", "json").stdout)[0]
    assert entry["reason"] == "a greeting für alle"
    assert (entry["commit"], entry["pipeline_url"]) == ("a" * 40, "https://ci.example/7")

    spent = spillway("apply", "--plan", plan["plan_id"])
    assert spent.returncode == 1
    assert "was applied by" in spent.stderr
    assert "request " in spent.stderr


def test_a_plan_is_a_comment_that_says_what_changes(spillway: Spillway, file: Path) -> None:
    file.write_text(ROUTES.replace("/hello", "/goodbye").replace("name: hello", "name: goodbye"))
    comment = spillway("plan", "-f", "-", "--output", "markdown", stdin=file.read_text())
    assert comment.returncode == 2, comment.stderr
    first, *rest = comment.stdout.splitlines()
    assert first == "### Spillway: 1 to create, 0 to update, 0 to delete, 0 unchanged"
    assert "+ Route acme/goodbye" in rest
    assert rest[-1].startswith("<!-- spillway-plan: ")


def test_an_error_names_the_line_of_the_file_and_the_request(spillway: Spillway, file: Path) -> None:
    file.write_text(ROUTES.replace("shop.acme.example", "shop acme"))
    refused = spillway("plan", "-f", str(file))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{file}:6: /objects/0/spec/hostname: " in refused.stderr
    assert "  request " in refused.stderr


def test_a_trace_says_which_route_wins_and_which_were_passed_by(spillway: Spillway) -> None:
    asked = spillway("trace", "GET", "http://shop.acme.example/checkout/pay?x=1", "-H", "X-Test: 1")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith("front/http: ")
    assert "not " in asked.stdout
    assert "in us-central1: " in asked.stdout
    foreign = spillway("trace", "GET", "https://api.globex.example/v1")
    assert foreign.stdout == "No load balancer serves this request for one of your hostnames.\n"


def test_tokens_are_made_listed_and_revoked_and_a_narrow_one_changes_nothing(spillway: Spillway, file: Path) -> None:
    made = spillway("token", "create", "reader", "--role", "viewer", "--scope", "*:read", "--days", "1")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert spillway("status", SPILLWAY_TOKEN=token).returncode == 0
    denied = spillway("apply", "-f", str(file), SPILLWAY_TOKEN=token)
    assert (denied.returncode, denied.stdout) == (1, "")
    row = next(
        row for row in json.loads(spillway("token", "list", "--output", "json").stdout) if row["name"] == "reader"
    )
    assert spillway("token", "revoke", str(row["id"])).returncode == 0
    assert "no longer valid" in spillway("status", SPILLWAY_TOKEN=token).stderr


@pytest.mark.exhaustive  # of the words alone it is asked in tests/apps
def test_a_schedule_is_shown_paused_resumed_and_run(spillway: Spillway) -> None:
    listed = spillway("schedule", "list")
    assert listed.returncode == 0, listed.stderr
    assert "acme/measure-shop" in listed.stdout
    assert spillway("schedule", "pause", "measure-shop", "--reason", "a sale").returncode == 0
    assert "Next: paused" in spillway("schedule", "show", "acme/measure-shop").stdout
    assert "; next " in spillway("schedule", "resume", "measure-shop").stdout
    started = spillway("schedule", "run", "measure-shop", "--output", "json")
    assert started.returncode == 0, started.stderr
    run = json.loads(started.stdout)["id"]
    assert [row["id"] for row in json.loads(spillway("schedule", "runs", "--output", "json").stdout)] == [run]
    assert "There is no schedule nightly" in spillway("schedule", "show", "nightly").stderr


@pytest.mark.exhaustive  # of the words alone it is asked in tests/apps
def test_a_capacity_test_is_shown_with_what_stands_in_its_way_and_its_runs(spillway: Spillway) -> None:
    assert "acme/shop-us" in spillway("capacity", "list").stdout
    shown = spillway("capacity", "show", "shop-us")
    assert shown.returncode == 0, shown.stderr
    assert "It cannot run now:" in shown.stdout
    asked = spillway("capacity", "start", "shop-us", "--output", "json")
    run = json.loads(asked.stdout)
    assert asked.returncode == (1 if run["terminal"] else 0), asked.stderr
    assert str(run["id"]) in spillway("capacity", "runs", "shop-us").stdout
    assert spillway("capacity", "set-limit", str(run["id"])).returncode == 1


def test_a_customer_and_an_operator_see_their_status(spillway: Spillway, console: Console) -> None:
    assert "routes" in spillway("status").stdout
    seen = spillway("status", SPILLWAY_TOKEN=console.operator)
    assert seen.returncode == 0, seen.stderr
    assert "europe-west1" in seen.stdout


def test_a_console_that_cannot_be_reached_and_a_word_that_is_not_there_end_with_1(spillway: Spillway) -> None:
    assert spillway("nothing").returncode == 1
    assert spillway("apply").returncode == 1
    assert spillway("status", SPILLWAY_URL="http://far.example").returncode == 1
    assert "https://" in spillway("status", SPILLWAY_URL="http://far.example").stderr
