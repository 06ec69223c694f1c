"""The pages of the Terraform provider say what is so: each example runs, and each attribute stands on its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from apps.accounts.bootstrap import replace_token
from apps.accounts.models import Account
from apps.api import terraform, terraform_pages
from tests.conformance.load_certificate import write_certificate
from tests.conftest import actor_of
from tests.e2e.terraform_provider import Terraform, built

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.django_db(transaction=True)]
DOCS = terraform_pages.FOLDER / "docs"
KINDS = [kind["type"] for kind in terraform.kinds()]
HEAD = 'terraform {\n  required_providers {\n    spillway = { source = "spillway/spillway" }\n  }\n}\n'


@pytest.fixture
def folder(live_server: LiveServer, live_redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terraform:
    """An empty folder of the operator of an empty console."""
    built()
    monkeypatch.setenv("TF_VAR_webhook_secret", "whsec_" + "QUJD" * 10)
    operator = actor_of("operator", Account.Kind.OPERATOR).account
    return Terraform(tmp_path, live_server.url, replace_token(account=operator, name="terraform"))


def blocks(page: Path) -> list[str]:
    """The configurations of a page, in its order."""
    return [each.partition("```")[0] for each in page.read_text().split("```terraform\n")[1:]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_of_a_page_run_as_they_stand(kind: str, folder: Terraform) -> None:
    """Made, planned again without a change, read by the data source, imported as the page says, deleted."""
    example, imported = blocks(DOCS / "resources" / f"{kind}.md")
    (read,) = blocks(DOCS / "data-sources" / f"{kind}.md")
    chain, key = write_certificate(folder.folder, "shop.example.com")
    chain.rename(folder.folder / "shop.crt")
    key.rename(folder.folder / "shop.key")
    folder.text(HEAD + example)
    folder.apply()
    assert "No changes" in folder.plan()
    folder.text(read, "read.tf")
    assert "No changes" in folder.plan()
    command = re.findall(r"terraform (import .*)", (DOCS / "resources" / f"{kind}.md").read_text())[-1].split()
    folder.run("state", "rm", command[1])
    folder.run(*command)
    folder.apply()
    assert "No changes" in folder.plan()
    folder.run("state", "rm", command[1])
    folder.text(imported, "import.tf")
    assert "1 imported" in folder.apply()
    (folder.folder / "read.tf").unlink()
    if "spillway_account" in example:  # has a history, so it stays
        folder.run("state", "rm", "spillway_account.acme")
    folder.run("destroy", "-auto-approve", "-refresh=false")  # else it plans the account anew, which is there


def test_the_page_of_the_provider_runs_and_its_account_is_forgotten_not_deleted(folder: Terraform) -> None:
    used, removed = blocks(DOCS / "index.md")
    account, _ = blocks(DOCS / "resources" / "account.md")
    folder.text(used + account)
    folder.apply()
    folder.text(used)
    assert "suspend it instead" in " ".join(folder.apply(status=1).split())
    folder.text(used + removed)
    folder.apply()
    assert "No changes" in folder.plan()
    assert Account.objects.filter(name="acme").exists()


def attributes(block: dict[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    """Each attribute with where it stands."""
    for name, attribute in block["attributes"].items():
        yield at, name
        if "nested_type" in attribute:
            yield from attributes(attribute["nested_type"], f"{at}--{name}".removeprefix("--"))


def test_each_attribute_stands_on_its_page(folder: Terraform) -> None:
    folder.text(HEAD)
    (schemas,) = json.loads(folder.run("providers", "schema", "-json"))["provider_schemas"].values()
    pages = {DOCS / "index.md": schemas["provider"]}
    pages |= {DOCS / "resources" / f"{name[9:]}.md": each for name, each in schemas["resource_schemas"].items()}
    pages |= {DOCS / "data-sources" / f"{name[9:]}.md": each for name, each in schemas["data_source_schemas"].items()}
    assert set(pages) == set(DOCS.rglob("*.md"))
    for page, schema in pages.items():
        text = page.read_text()
        for at, name in attributes(schema["block"]):
            part = text.partition(f'<a id="nestedatt--{at}"></a>')[2].partition("<a id=")[0] if at else text
            assert f"- `{name}` (" in part, (page, at, name)
