"""The Terraform provider, built from the tree, and folders in which the real Terraform uses it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.api import terraform
from apps.definitions.shapes.kinds import SHAPES
from tests.golang import CACHE, go

SOURCE = Path(__file__).resolve().parents[2] / "deploy" / "terraform"
SECONDS_TO_BUILD, PATIENCE_S = 900, 120
OF_KIND = dict(zip(SHAPES, terraform.kinds(), strict=True))
JSON_FIELDS = ("object",)  # of schedules: any document
Ran = subprocess.CompletedProcess[str]


def built() -> Path:
    """The folder of the provider, vetted and built anew where its source changed."""
    folder = CACHE.with_name("terraform-provider")
    for words in (("vet", "."), ("test", "."), ("build", "-o", f"{folder}/", ".")):
        done = go(*words, cwd=SOURCE, patience_s=SECONDS_TO_BUILD)
        assert not isinstance(done, str), done
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@dataclass(frozen=True)
class Terraform:
    """A folder with a configuration, and who may change what at which console."""

    folder: Path
    url: str
    token: str
    installation: str = (
        f'dev_overrides {{ "spillway/spillway" = "{CACHE.with_name("terraform-provider")}" }}\n  direct {{}}'
    )

    def write(self, *objects: Mapping[str, Any], **settings: Any) -> None:
        """The configuration: a resource for each document, each after the ones before it."""
        self.text(json.dumps(configuration(objects, settings)), "main.tf.json")

    def text(self, text: str, name: str = "main.tf") -> None:
        """The configuration as somebody wrote it."""
        (self.folder / name).write_text(text)

    def run(self, *words: str, status: int = 0) -> str:
        """What `terraform` says, without colours."""
        rc = self.folder / "terraform.rc"
        rc.write_text(f"provider_installation {{\n  {self.installation}\n}}\n")
        named = {"TF_CLI_CONFIG_FILE": str(rc), "SPILLWAY_URL": self.url, "SPILLWAY_TOKEN": self.token}
        environment = os.environ | named | {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        done = subprocess.run(
            ["terraform", *words, "-no-color"], cwd=self.folder, env=environment, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def apply(self, status: int = 0) -> str:
        """Make it so."""
        return self.run("apply", "-auto-approve", "-input=false", status=status)

    def plan(self, changes: bool = False) -> str:
        """What would change; exit code 2 says that something would."""
        return self.run("plan", "-input=false", "-detailed-exitcode", status=2 if changes else 0)


def address(document: Mapping[str, Any]) -> str:
    """How a configuration calls an object."""
    return f"spillway_{OF_KIND[document['kind']]['type']}.{document.get('account', 'operator')}-{document['name']}"


def configuration(documents: Iterable[Mapping[str, Any]], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Documents as Terraform's JSON."""
    found: dict[str, dict[str, Any]] = {}
    before: list[str] = []
    for document in documents:
        kind = OF_KIND[document["kind"]]
        resource = {"name": document["name"], "spec": _spec(document["spec"]), "depends_on": before[-1:]}
        if kind.get("owned"):
            resource["account"] = document.get("account", "operator")
        where = address(document)
        found.setdefault(where.partition(".")[0], {})[where.partition(".")[2]] = resource
        before.append(where)
    sources = {"spillway": {"source": "spillway/spillway"}}
    return {"terraform": {"required_providers": sources}, "provider": {"spillway": settings}, "resource": found}


def _spec(value: Any) -> Any:
    """A specification; the document within a schedule is text."""
    if isinstance(value, list):
        return [_spec(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: json.dumps(below) if name in JSON_FIELDS else _spec(below) for name, below in value.items()}
