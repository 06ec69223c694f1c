"""Each nginx.conf of the corpus is sent, planned and applied: what the reader writes, the services take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from apps.definitions.models import Route
from tests.forked_readers import forked_readers
from tests.interfaces.api.test_api_importing import FLEET
from tests.interfaces.api.test_api_objects import Api, house
from tests.interfaces.api.test_api_openapi import check
from tests.pure.compiler_fixtures import certificate_pem

__all__ = ["forked_readers", "house"]
CORPUS = Path(__file__).resolve().parents[2] / "import" / "nginx"
FILES = sorted(CORPUS.glob("*.conf"))
PEM = certificate_pem("shop.example.com")

pytestmark = [
    pytest.mark.slow(reason="each import reads, compares and renders everything"),
    pytest.mark.usefixtures("forked_readers"),
]


def order(path: Path, **more: Any) -> dict[str, Any]:
    text = path.read_text().replace("8080;", "8086;")  # the port of another load balancer there
    files = {path.name: text} | {each.name: each.read_text() for each in (CORPUS / "files").iterdir()}
    files |= dict.fromkeys(re.findall(r"ssl_certificate\S* (\S+);", text), PEM)
    passwords = {"alice": "a long password"}
    return {"files": files, "file": path.name, "fleets": [FLEET], "prefix": "old-", "passwords": passwords} | more


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.exhaustive if at % 16 else (), id=path.stem)
        for at, path in enumerate(FILES)
    ],
)
def test_each_file_is_planned_and_applied_and_changes_nothing_the_second_time(house: Api, path: Path) -> None:
    answer = house("POST", "import", order(path))
    assert answer.status_code == 200, answer.content
    found = answer.json()
    check(found, {"$ref": "#/components/schemas/Imported"})
    assert (found["needs"], found["refusals"]) == ([], [])
    done = house("POST", f"plans/{found['plan']['plan_id']}/apply")
    assert done.status_code == 200, done.content
    again = house("POST", "import", order(path)).json()
    assert again["plan"]["counts"] | {"unchanged": 0} == dict.fromkeys(("create", "update", "delete", "unchanged"), 0)
    assert Route.objects.filter(load_balancer__name__startswith="old-nginx").exists() or path.stem == "12-streams"


def test_the_format_may_be_said_and_the_files_of_an_include_stand_beside(house: Api) -> None:
    files = {"nginx.conf": "http { include conf.d/*.conf; }", "conf.d/a.conf": "server { listen 8089; return 204; }"}
    for more in ({}, {"format": "nginx"}):
        found = house("POST", "import", {"files": files, "fleets": [FLEET]} | more).json()
        assert [(each["file"], each["line"]) for each in found["lines"]][2:] == [("conf.d/a.conf", 1)] * 3
        assert found["plan"]["counts"]["create"] == 2
