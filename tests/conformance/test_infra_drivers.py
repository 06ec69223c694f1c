"""One suite for every driver that plans and applies: the fake in memory, and the real Terraform."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.targets.terraform.aws.render import VERSION
from apps.drivers.infra import credentials, process_guard, reading, terraform
from apps.drivers.infra.contract import (
    Backend,
    Import,
    InfraDriver,
    InfraError,
    Locked,
    Plan,
    Progress,
    StalePlan,
    Stopped,
    Workspace,
)
from apps.drivers.infra.credentials import environment, role_of
from apps.drivers.infra.memory import memory_cloud
from apps.drivers.infra.mirrors import cli_configuration, mirror
from apps.drivers.infra.registry import open_driver
from apps.drivers.pins import read_endpoint
from apps.stacks.models import StackRun
from apps.stacks.state import passwords
from tests.apps.stacks_env import Terraform, a_run, a_stack, data
from tests.conformance.listening import listening
from tests.terraform_providers import provides

TERRAFORM = shutil.which(os.environ.get("TERRAFORM_BIN", "terraform"))
NO_TERRAFORM = "NOT TESTED: there is no terraform here; install it, or name another in TERRAFORM_BIN"

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow(reason="Terraform reads the document anew for each plan and for each apply"),
]
# What a driver's caller relies on is asked of the fake each time; of Terraform too, where the run of a stack end to end
# (tests/e2e/test_stack_aws.py) would not show it.
commits = pytest.mark.django_db(transaction=True)
OF_BOTH = ["memory", pytest.param("terraform", marks=commits)]
rarely_of_terraform = pytest.mark.parametrize(
    "env", ["memory", pytest.param("terraform", marks=[commits, pytest.mark.exhaustive])], indirect=True
)
# The same address of the state for every test, so that documents that are alike are synthesized once.
STACK_ID = 4711


@dataclass
class Env:
    """A driver, the state behind it, and what it said."""

    driver: InfraDriver
    backend: Backend
    root: Path
    take_the_lock: Callable[[], None]
    numbers: Iterator[int] = field(default_factory=itertools.count)
    heard: list[Progress] = field(default_factory=list)
    go_on: bool = True

    def workspace(self, document: dict[str, Any], **more: Any) -> Workspace:
        directory = self.root / str(next(self.numbers))
        directory.mkdir()
        return Workspace(directory, self.backend, document, **more)

    def plan(self, document: dict[str, Any], *, destroy: bool = False, **more: Any) -> Plan:
        workspace = self.workspace(document, **more)
        return self.driver.plan(workspace, destroy=destroy, heard=self.heard.append, may_go_on=lambda: self.go_on)

    def apply(self, document: dict[str, Any], plan: Plan, **more: Any) -> Any:
        workspace = self.workspace(document, **more)
        return self.driver.apply(workspace, plan.file, heard=self.heard.append, may_go_on=lambda: self.go_on)

    def bring(self, document: dict[str, Any]) -> Any:
        return self.apply(document, self.plan(document))


@pytest.fixture(params=OF_BOTH)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Env:
    """Each driver in turn, with an empty state."""
    if request.param == "memory":
        address = f"memory:{tmp_path}"
        cloud = memory_cloud(address)
        return Env(open_driver("memory"), Backend(address, "", ""), tmp_path, lambda: setattr(cloud, "locked", True))
    found: Env = request.getfixturevalue("real")
    return found


@pytest.fixture
def real(request: pytest.FixtureRequest, tmp_path: Path, operator: Actor, live_server: Any) -> Env:
    """The real Terraform."""
    if TERRAFORM is None:
        pytest.skip(NO_TERRAFORM)
    stack = a_stack(operator, id=STACK_ID)
    run, password = a_run(stack)
    backend = Backend(f"{live_server.url}/state/{stack.pk}", passwords.USERNAME.format(run.pk), password)

    def lock() -> None:
        assert Terraform(stack.pk, run.pk, password).lock("mine").status_code == 200

    return Env(open_driver(TERRAFORM), backend, tmp_path, lock)


def actions(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {change.address: change.actions for change in plan.changes}


@rarely_of_terraform
def test_what_is_wanted_is_planned_made_and_then_nothing_is_left_to_do(env: Env) -> None:
    document = data("a", "b")
    plan = env.plan(document)
    assert actions(plan) == {"terraform_data.a": ("create",), "terraform_data.b": ("create",)}
    assert env.apply(document, plan) == {"a_value": "a", "b_value": "b"}
    again = env.plan(document)
    assert (again.is_empty, again.changes, again.drift) == (True, (), ())
    assert again.outputs == {"a_value": "a", "b_value": "b"}
    assert again.terraform_version


@rarely_of_terraform
def test_one_change_plans_one_change_with_what_was_and_what_will_be(env: Env) -> None:
    env.bring(data("b", a="10"))
    plan = env.plan(data("b", a="20"))
    (change,) = plan.changes
    assert (change.address, change.type, change.actions) == ("terraform_data.a", "terraform_data", ("update",))
    assert change.before is not None
    assert change.after is not None
    assert (change.before["input"], change.after["input"]) == ("10", "20")


@rarely_of_terraform
def test_what_is_not_wanted_any_more_is_deleted_and_nothing_stays_behind(env: Env) -> None:
    env.bring(data("a", "b"))
    plan = env.plan(data("a"))
    assert actions(plan) == {"terraform_data.b": ("delete",)}
    env.apply(data("a"), plan)
    env.bring(data())
    assert env.plan(data()).is_empty


@rarely_of_terraform
def test_a_destroying_plan_deletes_all(env: Env) -> None:
    document = data("a", "b")
    env.bring(document)
    plan = env.plan(document, destroy=True)
    assert actions(plan) == {"terraform_data.a": ("delete",), "terraform_data.b": ("delete",)}
    assert env.apply(document, plan) == {}
    assert set(actions(env.plan(document)).values()) == {("create",)}


def stands_already(env: Env) -> tuple[dict[str, Any], tuple[Import, ...]]:
    """A document, half of which a cloud made that no state knows; Terraform takes any id for data of its own."""
    cloud = memory_cloud(env.backend.address)
    cloud.resources["terraform_data.b"], cloud.lost = {"input": ""}, {"terraform_data.b"}
    return data("a", "b"), (Import("terraform_data.b", "${b}"),)


@rarely_of_terraform
def test_what_stands_already_is_taken_over_instead_of_made(env: Env) -> None:
    document, imports = stands_already(env)
    plan = env.plan(document, imports=imports)
    assert {change.address: (change.actions, change.imported) for change in plan.changes} == {
        "terraform_data.a": (("create",), False),
        "terraform_data.b": (("update",), True),
    }
    assert env.apply(document, plan) == {"a_value": "a", "b_value": "b"}
    assert env.plan(document).is_empty


@rarely_of_terraform
def test_what_stands_already_is_made_again_where_nobody_says_so_and_is_not_taken_over_to_be_destroyed(
    env: Env,
) -> None:
    document, imports = stands_already(env)
    assert env.plan(document, destroy=True, imports=imports).changes == ()
    assert actions(env.plan(document)) == {"terraform_data.a": ("create",), "terraform_data.b": ("create",)}


@rarely_of_terraform
def test_what_cannot_be_changed_in_place_is_replaced_and_the_plan_says_by_what(env: Env) -> None:
    def document(trigger: str) -> dict[str, Any]:
        found = data("a")
        found["resources"]["terraform_data"]["a"]["triggers_replace"] = trigger
        return found

    env.bring(document("one"))
    (change,) = env.plan(document("two")).changes
    assert (change.actions, change.replaced_by) == (("delete", "create"), ("triggers_replace",))


@rarely_of_terraform
def test_a_plan_is_good_for_the_state_from_which_it_was_made_alone(env: Env) -> None:
    plan = env.plan(data("a", "b"))
    env.bring(data("a"))
    with pytest.raises(StalePlan):
        env.apply(data("a", "b"), plan)
    assert env.plan(data("a")).is_empty


def test_a_locked_state_is_left_alone(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terraform, "LOCK", "-lock-timeout=0s")
    plan = env.plan(data("a"))
    env.take_the_lock()
    with pytest.raises(Locked):
        env.apply(data("a"), plan)


def test_who_may_not_go_on_is_stopped(env: Env) -> None:
    plan = env.plan(data("a"))
    env.go_on = False
    with pytest.raises(Stopped):
        env.plan(data("a"))
    with pytest.raises(Stopped):
        env.apply(data("a"), plan)
    env.go_on = True
    assert actions(env.plan(data("a"))) == {"terraform_data.a": ("create",)}


@rarely_of_terraform
def test_progress_is_told_as_it_happens(env: Env) -> None:
    env.bring(data("a"))
    told = [(each.kind, each.address) for each in env.heard if each.address]
    assert told == [("start", "terraform_data.a"), ("complete", "terraform_data.a")]


# From here on the real one alone.


def with_secret(value: str = "${var.crt_3_key}") -> dict[str, Any]:
    return data(a=value) | {"variables": ["crt_3_key"], "outputs": {}}


def test_a_secret_reaches_terraform_and_is_told_to_nobody(real: Env) -> None:
    document, secrets = with_secret(), {"crt_3_key": "hush-hush-7"}
    plan = real.plan(document, secrets=secrets)
    (change,) = plan.changes
    assert change.after is not None
    assert change.after["input"] == "(sensitive)"
    real.apply(document, plan)
    assert "hush-hush-7" not in f"{plan.changes} {plan.outputs} {plan.names} {real.heard}"
    assert not [path for path in real.root.rglob("*.json") if b"hush-hush-7" in path.read_bytes()]


@pytest.mark.exhaustive  # as every run that somebody approves
def test_a_plan_is_applied_under_another_password_than_it_was_made(real: Env) -> None:
    document = data("a")
    plan = real.plan(document)
    run = StackRun.objects.get()
    password = passwords.mint(run)
    run.save()
    old, real.backend = real.backend, replace(real.backend, password=password)
    assert real.apply(document, plan) == {"a_value": "a"}
    real.backend = old
    with pytest.raises(InfraError):
        real.plan(document)


def test_an_error_is_said_in_one_sentence_with_its_resource_and_without_secrets(real: Env) -> None:
    document = with_secret("${file(var.crt_3_key)}")
    with pytest.raises(InfraError) as caught:
        real.plan(document, secrets={"crt_3_key": "/nowhere/hush-hush-7"})
    assert "hush-hush-7" not in f"{caught.value.message} {caught.value.output} {real.heard}"
    assert "│" not in caught.value.message
    with pytest.raises(InfraError) as caught:
        real.plan(data(a="${nothing.known.at_all}"))
    assert "nothing" in caught.value.message


def test_a_document_of_texts_alone_stays_a_text(real: Env) -> None:
    document = data(a='$${file("/etc/hostname")}')
    assert real.bring(document) == {"a_value": '${file("/etc/hostname")}'}


def test_a_missing_binary_says_what_to_do(real: Env) -> None:
    real.driver = open_driver("no-such-terraform")
    with pytest.raises(InfraError, match="TERRAFORM_BIN"):
        real.plan(data("a"))


def test_the_environment_of_the_worker_does_not_reach_terraform(real: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CLI_ARGS_plan", "-no-such-flag")
    monkeypatch.setenv("TF_VAR_crt_3_key", "from outside")
    monkeypatch.setenv("TF_LOG", "TRACE")
    assert not real.plan(data("a")).is_empty


# Where credentials may be used.


def asking_at(cloud: str, url: str) -> dict[str, Any]:
    """A document whose provider asks another endpoint, AWS's as soon as it starts."""
    settings: dict[str, Any] = {"project": "acme-prod-1", "compute_custom_endpoint": f"{url}/compute/v1/"}
    if cloud == "aws":
        settings = {"region": "eu-central-1", "endpoints": [{"sts": url, "ec2": url}], "max_retries": 1}
    provider = {"name": cloud, "source": f"hashicorp/{cloud}", "version": VERSION, "settings": settings}
    return data() | {"providers": [provider], "resources": {"aws_eip": {"ip_4": {"domain": "vpc"}}}}


PROD = {
    "SPILLWAY_CLOUD_PROD_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "SPILLWAY_CLOUD_PROD_SECRET_ACCESS_KEY": "a-secret-access-key-for-tests",
    "SPILLWAY_CLOUD_PROD_SESSION_TOKEN": "a-session-token-for-tests",
    "SPILLWAY_CLOUD_PROD_CREDENTIALS": "{}",
}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials by name, and nothing that says where they may be used."""
    for name, value in PROD.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("cloud", ["aws", "google"])
@pytest.mark.parametrize(("reference", "name"), [("env:PROD", "PROD_"), ("", ""), ("profile:ops", "")])
def test_terraform_takes_no_credentials_to_an_endpoint_that_nobody_named(
    real: Env, cloud: str, reference: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as stranger:
        monkeypatch.setenv(f"SPILLWAY_CLOUD_{name}ENDPOINT", "https://compute.example.com")
        document = asking_at(cloud, stranger.url)
        with pytest.raises(InfraError, match=f"Set SPILLWAY_CLOUD_{name}ENDPOINT "):
            real.plan(document, credentials=reference)
        with pytest.raises(InfraError, match=f"Set SPILLWAY_CLOUD_{name}ENDPOINT "):
            real.apply(document, Plan(b"a plan"), credentials=reference)
        assert stranger.connections == 0


@pytest.mark.exhaustive  # the real provider, for what the tests above would have seen
@pytest.mark.usefixtures("keys")
@pytest.mark.skipif(not provides("hashicorp/aws"), reason="NOT TESTED: no mirror holds hashicorp/aws")
@pytest.mark.parametrize("compared", [True, False], ids=["named", "without the comparing"])
def test_where_the_endpoint_is_named_terraform_asks_there_and_shows_a_session_token_but_no_key(
    real: Env, compared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as stranger:
        if compared:
            monkeypatch.setenv("SPILLWAY_CLOUD_PROD_ENDPOINT", stranger.url)
        else:
            monkeypatch.setattr(credentials, "named_endpoint", lambda server, **_: read_endpoint(server))
        with pytest.raises(InfraError):
            real.plan(asking_at("aws", stranger.url), credentials="env:PROD")
        said = b"".join(stranger.heard)
    assert PROD["SPILLWAY_CLOUD_PROD_SESSION_TOKEN"].encode() in said
    assert PROD["SPILLWAY_CLOUD_PROD_SECRET_ACCESS_KEY"].encode() not in said
    assert b";host;" in said


def test_a_guard_outlives_a_console_that_answers_no_http() -> None:
    with listening() as stranger:
        stranger.answer = b"not HTTP\r\n\r\n"
        process_guard.beat(stranger.url)
        assert stranger.heard[0].startswith(b"POST /alive ")


# References to credentials and where providers are.


KEY = {"SPILLWAY_CLOUD_MAIN_ACCESS_KEY_ID": "AKIA1", "SPILLWAY_CLOUD_MAIN_SECRET_ACCESS_KEY": "secret"}


def test_a_reference_brings_what_it_names_and_nothing_else() -> None:
    given = {**KEY, "AWS_ACCESS_KEY_ID": "own", "AWS_PROFILE": "mine", "HOME": "/home/x", "OTHER": "x"}
    key = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert environment("env:MAIN", ["aws"], [], given) == key
    assert environment("profile:ops", ["aws"], [], given) == {"HOME": "/home/x", "AWS_PROFILE": "ops"}
    own = {"AWS_ACCESS_KEY_ID": "own", "AWS_PROFILE": "mine", "HOME": "/home/x"}
    assert environment("", ["aws"], [], given) == environment("role:arn:aws:iam::1:role/x", ["aws"], [], given) == own
    google = {"SPILLWAY_CLOUD_MAIN_CREDENTIALS": "{}"}
    assert environment("env:MAIN", ["google"], [], google) == {"GOOGLE_CREDENTIALS": "{}"}
    token = {"SPILLWAY_CLOUD_MAIN_SESSION_TOKEN": "t"}
    assert environment("env:MAIN", ["aws"], [], KEY | token) == key | {"AWS_SESSION_TOKEN": "t"}
    assert environment("env:MAIN", ["other"], [], given) == {}
    assert role_of("role:arn:x") == "arn:x"
    assert role_of("env:MAIN") == ""


@pytest.mark.parametrize("reference", ["env:OTHER", "env:SPILLWAY_SECRET_KEY", "env:", "env:main", "env:A\n", "x"])
def test_no_reference_reaches_another_secret_of_the_environment(reference: str) -> None:
    given = {**KEY, "SPILLWAY_SECRET_KEY": "hush-hush", "OTHER": "hush-hush"}
    with pytest.raises(InfraError) as caught:
        environment(reference, ["aws"], [], given)
    assert "hush" not in caught.value.message


def test_a_mirror_is_the_variables_then_an_implied_one_then_one_near_the_root(tmp_path: Path) -> None:
    assert mirror({"TF_PLUGIN_MIRROR": "/given", "HOME": str(tmp_path)}, tmp_path) == Path("/given")
    near = tmp_path / "opt" / "plugins" / "registry.terraform.io" / "hashicorp" / "aws"
    near.mkdir(parents=True)
    implied = tmp_path / "home" / ".terraform.d" / "plugins" / "registry.terraform.io"
    home = {"HOME": str(tmp_path / "home")}
    if mirror({}, tmp_path) == tmp_path / "opt" / "plugins":  # this machine has none that Terraform implies
        assert mirror(home, tmp_path) == tmp_path / "opt" / "plugins"
    implied.mkdir(parents=True)
    assert mirror(home, tmp_path) == tmp_path / "home" / ".terraform.d" / "plugins"
    said = cli_configuration(tmp_path, {"TF_PLUGIN_MIRROR": str(tmp_path / "opt" / "plugins")})
    assert 'include = ["registry.terraform.io/hashicorp/aws"]' in said
    assert 'exclude = ["registry.terraform.io/hashicorp/aws"]' in said


def test_providers_that_others_could_have_put_there_are_passed_over(tmp_path: Path) -> None:
    if mirror({}, tmp_path) is not None:
        pytest.skip("this machine has providers where Terraform implies them")
    near = tmp_path / "shared" / "plugins" / "registry.terraform.io"
    near.mkdir(parents=True)
    assert mirror({}, tmp_path) == near.parent
    (tmp_path / "shared").chmod(0o1777)
    assert mirror({}, tmp_path) is None


def test_secrets_are_taken_out_of_words_also_as_json_writes_them() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"
    assert reading.without(f"said {key} and", [key]) == "said •••\n and"
    assert reading.without(r"said line\nfeed now", ["line\nfeed"]) == "said ••• now"
    assert reading.without("a word of two", ["a"]) == "a word of two"
