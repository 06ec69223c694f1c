"""A load balancer leaves by API: a zip of its folder, without keys, for operators."""

from __future__ import annotations

import io
import zipfile

import pytest

from apps.accounts.actors import Actor
from apps.exporting import services
from tests.interfaces.api.test_api_objects import Api, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def house(tutorial_env: Actor) -> Api:
    """The operator's program."""
    return Api(tutorial_env)


def test_each_format_is_a_zip_with_a_readme(house: Api) -> None:
    for form in ("haproxy", "gateway-api", "documents"):
        answer = house("GET", f"load-balancers/operator/front/export?format={form}&fleet=europe-west1")
        assert answer.status_code == 200, answer.content
        assert answer["Content-Type"] == "application/zip"
        assert answer["Content-Disposition"] == f'attachment; filename="front-{form}.zip"'
        with zipfile.ZipFile(io.BytesIO(answer.content)) as files:
            assert f"front-{form}/README.md" in files.namelist()
            assert "PRIVATE KEY" not in "".join(files.read(name).decode() for name in files.namelist())


def test_what_cannot_be_exported_is_said(house: Api, acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = assert_problem(house("GET", "load-balancers/operator/front/export?format=xml"), 422)
    assert problem["errors"][0]["pointer"] == "/format"
    problem = assert_problem(house("GET", "load-balancers/operator/front/export?fleet=nowhere"), 422)
    assert problem["errors"][0]["pointer"] == "/fleet"
    assert_problem(house("GET", "load-balancers/operator/nothing/export"), 404)
    assert_problem(Api(acme)("GET", "load-balancers/operator/front/export"), 403)
    monkeypatch.setattr(services, "MOST_ROUTES", 0)
    problem = assert_problem(house("GET", "load-balancers/operator/front/export?format=documents"), 422)
    assert "manage.py export front" in problem["errors"][0]["detail"]
