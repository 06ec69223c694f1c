"""The page that imports a configuration takes manifests of Kubernetes as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from apps.accounts.actors import Actor
from tests.interfaces.api.test_api_importing import FLEET
from tests.interfaces.people import client_of

MANIFESTS = Path(__file__).resolve().parents[2] / "import" / "kubernetes"

pytestmark = pytest.mark.slow(reason="each import starts a process that reads it")


def test_pasted_manifests_become_a_report_of_each_field_and_a_plan(tutorial_env: Actor) -> None:
    text = (MANIFESTS / "07-closed.yaml").read_text()
    page = client_of(tutorial_env).post(reverse("web:import"), {"/fleets": [FLEET], "pasted": text}).content.decode()
    assert "Its paths answer 503" in page
    assert "Ingress closed/guarded" in page
    assert "Apply this plan" in page
    assert "X-Secret" not in page


def test_questions_are_answered_by_fields(tutorial_env: Actor) -> None:
    text = (MANIFESTS / "01-shop.yaml").read_text()
    page = client_of(tutorial_env).post(reverse("web:import"), {"/fleets": [FLEET], "pasted": text}).content.decode()
    assert "certificates: shop/shop-tls=NAME" in page
    assert "Apply this plan" not in page
    client: Client = client_of(tutorial_env)
    assert "Kubernetes" in client.get(reverse("web:import")).content.decode()


def test_several_uploaded_manifests_are_one_import_and_two_of_one_name_are_refused(tutorial_env: Actor) -> None:
    documents = (MANIFESTS / "07-closed.yaml").read_text().split("\n---\n")
    files = [ContentFile(each.encode(), f"{at}-part.yaml") for at, each in enumerate(documents)]
    client = client_of(tutorial_env)
    page = client.post(reverse("web:import"), {"/fleets": [FLEET], "/files": files}).content.decode()
    assert "Apply this plan" in page
    assert "1-part.yaml</small>" in page
    same = [ContentFile(documents[0].encode(), "same.yaml"), ContentFile(documents[1].encode(), "same.yaml")]
    answer = client.post(reverse("web:import"), {"/fleets": [FLEET], "/files": same})
    assert answer.status_code == 422
    assert "Two files are called same.yaml" in answer.content.decode()
