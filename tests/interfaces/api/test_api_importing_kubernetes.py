"""Manifests of Kubernetes are sent and come back as a report of each field with a plan that can be applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.definitions.models import Route
from apps.importing import ordering
from tests.forked_readers import forked_readers
from tests.interfaces.api.test_api_importing import FLEET, field_errors
from tests.interfaces.api.test_api_objects import Api, house
from tests.interfaces.api.test_api_openapi import check
from tests.manifests import tls_secret

__all__ = ["forked_readers", "house"]
CORPUS = sorted((Path(__file__).resolve().parents[2] / "import" / "kubernetes").glob("*.yaml"))

pytestmark = [
    pytest.mark.slow(reason="each import reads, compares and renders everything"),
    pytest.mark.usefixtures("forked_readers"),
]


def imported(house: Api, name: str, text: str) -> dict[str, Any]:
    secrets = "---\n".join(tls_secret(each, f"{each}-tls", f"{each}.example.com") for each in ("shop", "market"))
    body = {"files": {name: f"{text}---\n{secrets}"}, "fleets": [FLEET], "prefix": "k-"}
    answer = house("POST", "import", body)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    check(found, {"$ref": "#/components/schemas/Imported"})
    return found


def test_there_is_a_corpus() -> None:
    assert len(CORPUS) >= 12


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.exhaustive if at % 8 else (), id=path.stem)
        for at, path in enumerate(CORPUS)
    ],
)
def test_each_file_of_the_corpus_gives_a_plan_without_questions(house: Api, path: Path) -> None:
    found = imported(house, path.name, path.read_text())
    assert (found["needs"], found["refusals"]) == ([], [])
    assert found["plan"]["counts"]["create"] == len(found["objects"]) > 0


def test_the_plan_is_applied_and_the_same_file_again_changes_nothing(house: Api) -> None:
    path = next(each for each in CORPUS if "canary" in each.name)
    plan = imported(house, path.name, path.read_text())["plan"]
    assert house("POST", f"plans/{plan['plan_id']}/apply").status_code == 200
    assert Route.objects.filter(load_balancer__name="k-nginx").count() == 5
    again = imported(house, path.name, path.read_text())["plan"]["counts"]
    assert again | {"unchanged": 0} == dict.fromkeys(("create", "update", "delete", "unchanged"), 0)


def test_what_is_no_yaml_is_said_at_its_line(house: Api) -> None:
    found = imported(house, "web.yaml", "apiVersion: v1\nkind: [Ingress\n")
    assert found["plan"] is None
    (line,) = found["lines"]
    assert (line["verdict"], "no YAML" in line["reasons"][0]) == ("not_possible", True)


def test_several_files_are_one_import_and_every_line_names_its_file(house: Api) -> None:
    text = next(each for each in CORPUS if "canary" in each.name).read_text()
    documents = text.split("\n---\n")
    files = {f"{at}.yaml": document for at, document in enumerate(documents)}
    found = house("POST", "import", {"files": files, "fleets": [FLEET], "prefix": "k-"}).json()
    assert found["needs"] == []
    assert found["plan"]["counts"]["create"] == len(found["objects"]) > 0
    assert {line["file"] for line in found["lines"]} == set(files)


def test_every_one_of_several_files_is_held_to_the_ceilings(house: Api) -> None:
    manifest = "apiVersion: v1\nkind: Service\n"
    long = manifest + "x" * (ordering.LONGEST_LINE + 1)
    body = {"files": {"a.yaml": manifest, "b.yaml": long}, "fleets": [FLEET]}
    assert field_errors(house("POST", "import", body)) == {"/file": "too_long"}
    many = {f"{at}.yaml": manifest + "\n" * (ordering.MOST_LINES // 2) for at in range(2)}
    assert field_errors(house("POST", "import", {"files": many, "fleets": [FLEET]})) == {"/file": "too_large"}
