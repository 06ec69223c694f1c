"""The whole API against its own document: schemathesis sends what is allowed and what is not to a real server.

`python -m tests.conformance.api_fuzz [--examples 50] [--only REGEX]`: gunicorn on SQLite with the tutorial's
setup, once with an operator's token and once with a customer's. No answer may be 5xx, each must be as written down
(status, content type, headers, body; what is shown and not written down is an error here), and what the document
forbids must be refused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.bench.many_customers import console
from tests.ports import spare_port
from tests.servers import redis

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "apps" / "api" / "openapi.json"
TUTORIAL = ROOT / "deploy" / "examples" / "tutorial.yaml"
# What has to be refused may be refused in any of these ways; which one is right is for other tests.
SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 413, 414, 415, 422, 428, 429]
[checks.missing_required_header]
expected-statuses = [400, 401, 403, 406, 412, 415, 422, 428]
[checks.positive_data_acceptance]
enabled = false
"""
WAIT = "/query-wait"
# Names that exist, beside whatever the patterns give.
KNOWN = {
    "account": ["acme", "globex", "operator", "nobody"],
    "name": ["shop", "checkout", "us-central1", "nothing"],
    "region": ["us-central1", "europe-west1", "nowhere"],
    "to": ["us-central1", "europe-west1", "nowhere"],
}

SPARE_TOKENS = """
from apps.accounts.bootstrap import found_customer, found_operator
from apps.accounts.tokens import create_token
found_operator(username="admin", password="a password for fuzzing")
account = found_customer(name="acme")
for number in range(50):
    create_token(account=account, name=f"spare-{number}", role="viewer")
"""


@dataclass(frozen=True)
class Run:
    """How one caller's run ended."""

    caller: str
    good: bool
    said: str

    @property
    def cases(self) -> int:
        """Requests that were made up and sent."""
        found = re.findall(r"([\d,]+) generated", self.said)
        return int(found[-1].replace(",", "")) if found else 0


def for_fuzzing(document: dict[str, Any]) -> dict[str, Any]:
    """The document without waiting, with names that exist, and closed: what is shown must be written down."""
    parts = document["components"]
    for operation in (each for path in document["paths"].values() for each in path.values() if isinstance(each, dict)):
        operation["parameters"] = [each for each in operation.get("parameters", []) if WAIT not in each.get("$ref", "")]
    for name, values in KNOWN.items():
        _prefer(parts["parameters"][f"path-{name}"], {"type": "string", "enum": values})
    for name in ("id", "delivery"):
        _prefer(parts["parameters"][f"path-{name}"], {"type": "integer", "minimum": 1, "maximum": 40})
    for schema in parts["schemas"].values():
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
    # A server-sent stream never ends; another process serves it.
    document["paths"].pop("/api/v1/events", None)
    return document


def _prefer(parameter: dict[str, Any], likely: dict[str, Any]) -> None:
    """Half of the values from what exists; what is beyond it stays allowed."""
    parameter["schema"] = {"anyOf": [likely, parameter["schema"]]}


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The API with the tutorial's environment; yields its URL and a token for each kind of caller."""
    port = spare_port()
    with redis(folder) as url, _environment(folder, url):
        _manage("migrate", "--verbosity", "0")
        # Ids that are made up reach 40: whoever calls must not revoke the own token by chance.
        _manage("shell", "-c", SPARE_TOKENS)
        said = _manage("bootstrap", "--tokens", "--customer", "acme", stdin="a password for fuzzing\n")
        _manage("apply", str(TUTORIAL))
        tokens = json.loads(said.splitlines()[-1])
        with console(port):
            yield f"http://127.0.0.1:{port}", {name.partition("_")[0]: token for name, token in tokens.items()}


@contextmanager
def _environment(folder: Path, redis_url: str) -> Iterator[None]:
    ours = {
        "SPILLWAY_DATABASE_URL": f"sqlite:///{folder / 'fuzz.sqlite3'}",
        "SPILLWAY_REDIS_URL": redis_url,
        "SPILLWAY_VAR": str(folder),
        "SPILLWAY_API_RATE_LIMITS": "off",
        "SPILLWAY_LOG_LEVEL": "CRITICAL",
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    }
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _manage(*arguments: str, stdin: str = "") -> str:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, input=stdin, text=True, check=True, stdout=subprocess.PIPE).stdout


@dataclass(frozen=True)
class Asked:
    """How much is made up per operation; the phase `coverage` tries every bound and takes minutes."""

    examples: int = 50
    seed: int = 1
    only: str = ""
    phases: str = "coverage,fuzzing"


def fuzz(folder: Path, url: str, caller: str, token: str, asked: Asked) -> Run:
    """One run of schemathesis over every operation."""
    document, settings = folder / "openapi.json", folder / "schemathesis.toml"
    document.write_text(json.dumps(for_fuzzing(json.loads(DOCUMENT.read_text()))))
    settings.write_text(SETTINGS)
    tool = Path(sys.executable).with_name("schemathesis")
    # One thread: two that parse Python at the same time trip over a fault of CPython 3.11 (gh-106905).
    command = [str(tool), "--config-file", str(settings), "run", str(document), "--url", url, "--workers", "1"]
    command += [
        "--header",
        f"Authorization: Bearer {token}",
        "--max-examples",
        str(asked.examples),
        "--seed",
        str(asked.seed),
    ]
    command += ["--phases", asked.phases, "--no-shrink", "--continue-on-failure", "--warnings", "off"]
    command += ["--suppress-health-check", "all", "--request-timeout", "20", "--generation-database", "none"]
    if asked.only:
        command += ["--include-operation-id-regex", asked.only]
    done = subprocess.run(command, cwd=folder, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return Run(caller, done.returncode == 0, done.stdout)


def still_welcome(url: str, token: str) -> bool:
    """Whether the caller may still call: a run that locked itself out has proved nothing."""
    return httpx.get(f"{url}/api/v1/routes", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def runs(asked: Asked) -> Iterator[Run]:
    """A run for each kind of caller, the customer first: an operator may well take the customer's things away."""
    with tempfile.TemporaryDirectory(prefix="spillway-fuzz-") as name:
        folder = Path(name)
        with served(folder) as (url, tokens):
            for caller in ("customer", "operator"):
                yield fuzz(folder, url, caller, tokens[caller], asked)
                assert still_welcome(url, tokens[caller]), f"the {caller} locked itself out"


def main() -> int:
    """Print what schemathesis said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=50, help="made-up requests per operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose id matches")
    parser.add_argument("--phases", default=Asked.phases)
    good = True
    for run in runs(Asked(**vars(parser.parse_args()))):
        print(f"== {run.caller}\n{run.said}", flush=True)
        good &= run.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
