"""The real one: Terraform (or OpenTofu) as it is meant to be driven by programs.

1. `cdk.tf.json` of the document (synthesis.py) into the run's private directory, beside it what is to be imported.
2. `init`, `plan -out`, `show -json`: what would change, and the bytes of exactly that plan.
3. `init`, `apply <those bytes>`: nothing else can happen; a state that has moved on since makes Terraform refuse.

The environment is made from nothing: the search path, what the credentials' reference names, the variables' secrets and
the password of the state. All of these are taken out of whatever Terraform says.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from apps.compiler.targets.terraform.aws.naming import MARK
from apps.compiler.targets.terraform.expressions import literal
from apps.drivers.infra import credentials, reading
from apps.drivers.infra.contract import Heard, Import, InfraError, MayGoOn, Plan, Progress, Stopped, Workspace
from apps.drivers.infra.mirrors import cli_configuration
from apps.drivers.infra.running import END_S, Finished, Runner
from apps.drivers.infra.synthesis import synthesized

OLDEST = (1, 5)
PLAN_S = 30 * 60.0
APPLY_S = 2 * 3600.0
PLAN_FILE, IMPORTS = "plan.tfplan", "imports.tf.json"
CHANGES = 2
# What a proxy or a private authority in front of the cloud needs.
PASSED_ON = ("PATH", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")
PLAIN = ("-no-color", "-input=false")
LOCK = "-lock-timeout=10s"


@functools.cache
def check_version(binary: str) -> str:
    """The version of the binary. Raises InfraError when there is none, or when it is too old."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "TF_CLI_CONFIG_FILE": os.devnull}
    environment |= {"CHECKPOINT_DISABLE": "1", "HOME": os.devnull}
    try:
        said = subprocess.run(
            [binary, "version", "-json"], env=environment, capture_output=True, timeout=30, check=True
        ).stdout
        version = str(json.loads(said)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        raise InfraError(f"{binary} is not installed: install it, or set TERRAFORM_BIN.") from None
    if tuple(int(part) for part in version.split("-", maxsplit=1)[0].split(".")[:2]) < OLDEST:
        raise InfraError(f"{binary} is {version}; use {'.'.join(map(str, OLDEST))} or later.")
    return version


@dataclass(slots=True)
class _Talk:
    """What one run of Terraform says: events as they come, kept for the error that they may be."""

    heard: Heard
    secrets: tuple[str, ...]
    events: list[dict[str, Any]] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def line(self, line: bytes) -> None:
        """One line of `-json`."""
        event = reading.event_of(line)
        if event is None:
            return
        if event.get("type") == "outputs":
            self.outputs = reading.known_outputs(event.get("outputs") or {})
        if event.get("type") == "diagnostic":
            self.events.append(event)
        progress = reading.progress_of(event)
        if progress is not None:
            clean = reading.without(progress.message, self.secrets)
            self.heard(Progress(progress.kind, progress.address, progress.action, progress.seconds, clean))


@dataclass(frozen=True, slots=True)
class TerraformDriver:
    """`binary` is `terraform` or `tofu`, or a path to one; `end_s` is how long it may take to end in order."""

    binary: str = "terraform"
    end_s: float = END_S

    def plan(self, workspace: Workspace, *, destroy: bool, heard: Heard, may_go_on: MayGoOn) -> Plan:
        """Steps 1 and 2. Raises InfraError, Locked, Stopped."""
        runner, talk = self._prepare(workspace, heard, may_go_on, PLAN_S)
        asked = ["plan", *PLAIN, "-json", "-detailed-exitcode", LOCK, f"-out={PLAN_FILE}"]
        done = runner.run(*asked, *(["-destroy"] if destroy else []), heard=talk.line)
        if done.code not in {0, CHANGES}:
            raise _failure(done, talk)
        shown = runner.run("show", "-json", PLAN_FILE)
        if shown.code:
            raise _failure(shown, talk)
        return reading.plan_of(json.loads(shown.out), (workspace.directory / PLAN_FILE).read_bytes())

    def apply(self, workspace: Workspace, plan: bytes, *, heard: Heard, may_go_on: MayGoOn) -> Mapping[str, Any]:
        """Step 3. Raises InfraError, Locked, StalePlan, Stopped."""
        runner, talk = self._prepare(workspace, heard, may_go_on, APPLY_S)
        file = workspace.directory / PLAN_FILE
        file.touch(mode=0o600)
        file.write_bytes(plan)
        runner = replace(runner, outlives=workspace.backend.address)
        done = runner.run("apply", *PLAIN, "-json", LOCK, PLAN_FILE, heard=talk.line)
        if done.code:
            raise _failure(done, talk)
        return talk.outputs

    def _prepare(
        self, workspace: Workspace, heard: Heard, may_go_on: MayGoOn, longest_s: float
    ) -> tuple[Runner, _Talk]:
        check_version(self.binary)
        document = _for_run(workspace.document, credentials.role_of(workspace.credentials), workspace.mark)
        providers = [need["name"] for need in document["providers"]]
        keys = credentials.environment(workspace.credentials, providers, _endpoints(document))
        workspace.directory.chmod(0o700)
        (workspace.directory / "cdk.tf.json").write_bytes(synthesized(document, workspace.backend.address))
        if workspace.imports:
            (workspace.directory / IMPORTS).write_text(_import_blocks(workspace.imports))
        if not may_go_on():
            raise Stopped("Stopped before it started.")
        runner = Runner(
            self.binary, workspace.directory, _environment(workspace, keys), may_go_on, longest_s, self.end_s
        )
        hidden = [value for key, value in keys.items() if "KEY" in key or "TOKEN" in key or "CREDENTIALS" in key]
        talk = _Talk(heard, (*workspace.secrets.values(), *hidden, workspace.backend.password))
        done = runner.run("init", *PLAIN)
        if done.code:
            raise _failure(done, talk)
        return runner, talk


def _environment(workspace: Workspace, keys: Mapping[str, str]) -> dict[str, str]:
    """Made from nothing; the CLI configuration is written beside the rest."""
    cache = workspace.directory.parent / "plugins"
    cache.mkdir(exist_ok=True)
    configuration = workspace.directory / "terraform.rc"
    configuration.write_text(cli_configuration(cache))
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        "HOME": str(workspace.directory),
        **keys,
        **{f"TF_VAR_{name}": value for name, value in workspace.secrets.items()},
        "TF_CLI_CONFIG_FILE": str(configuration),
        "TF_IN_AUTOMATION": "1",
        "TF_HTTP_USERNAME": workspace.backend.username,
        "TF_HTTP_PASSWORD": workspace.backend.password,
        "CHECKPOINT_DISABLE": "1",
    }


def _endpoints(document: Mapping[str, Any]) -> list[str]:
    """Every URL that the document has a provider ask instead of its cloud's own; of the document, which may be old."""
    found: set[str] = set()
    for need in document["providers"]:
        for name, value in need["settings"].items():
            if name == "endpoints":
                found |= {url for each in value for url in each.values()}
            elif name.endswith("_custom_endpoint"):
                found.add(value)
    return sorted(found)


def _for_run(document: Mapping[str, Any], role: str, mark: str) -> Mapping[str, Any]:
    """The document whose AWS provider takes on the role, and tags everything with the mark of the state that knows it.

    Nothing changes for an empty one.
    """
    providers = deepcopy(document["providers"])
    for need in providers:
        if need["name"] == "aws" and role:
            need["settings"]["assume_role"] = [{"role_arn": role, "session_name": "spillway"}]
        if need["name"] == "aws" and mark:
            for each in need["settings"].get("default_tags", ()):
                each["tags"][MARK] = mark
    return {**document, "providers": providers}


def _import_blocks(imports: Sequence[Import]) -> str:
    """A file beside the document, so that the document stays what it was."""
    return json.dumps({"import": [{"to": each.address, "id": literal(each.id)} for each in imports]})


def _failure(done: Finished, talk: _Talk) -> InfraError:
    words = reading.without((done.errors or done.out).decode(errors="replace"), talk.secrets)
    error = reading.error_of(talk.events, words)
    return type(error)(reading.without(error.message, talk.secrets), output=error.output, address=error.address)
