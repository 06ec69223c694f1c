"""The page by which a load balancer leaves: four words for each format, and the archive behind its button."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.utils.html import escape

from apps.accounts.actors import Actor
from apps.definitions.models import LoadBalancer
from apps.exporting.services import FORMATS
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def test_the_page_says_what_each_format_leaves_out_and_leads_to_its_archive(tutorial_env: Actor) -> None:
    pk, client = LoadBalancer.objects.get(name="front").pk, client_of(tutorial_env)
    assert f"/export/{pk}" in client.get(f"/load-balancers/{pk}").content.decode()
    text = client.get(f"/export/{pk}").content.decode()
    assert "no lock-in" in text
    for each in FORMATS.values():
        assert each.title in text
        assert escape(each.leaves_out) in text
    answer = client.get(f"/export/{pk}?format=gateway-api&fleet=europe-west1")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as files:
        assert "front-gateway-api/gateway.yaml" in files.namelist()


def test_what_cannot_be_exported_is_said_on_the_page(tutorial_env: Actor, acme: Actor) -> None:
    pk = LoadBalancer.objects.get(name="front").pk
    answer = client_of(tutorial_env).get(f"/export/{pk}?format=haproxy&fleet=nowhere")
    assert answer.status_code == 422
    assert "Name the fleet of front" in answer.content.decode()
    assert client_of(acme).get(f"/export/{pk}").status_code == 404
    assert f"/export/{pk}" not in client_of(acme).get(f"/load-balancers/{pk}").content.decode()
