"""`manage.py import` reads manifests of Kubernetes as it reads haproxy.cfg."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.actors import Actor
from apps.definitions.models import Route

MANIFESTS = Path(__file__).resolve().parents[1] / "import" / "kubernetes"
FLEET = "us-central1"


def said(name: str, *words: str) -> str:
    out = io.StringIO()
    call_command("import", str(MANIFESTS / name), "--fleet", FLEET, *words, stdout=out)
    return out.getvalue()


def test_manifests_are_reported_and_applied(tutorial_env: Actor) -> None:
    told = said("07-closed.yaml", "--apply")
    assert "nginx.ingress.kubernetes.io/auth-url: https://sso.example.com/verify" in told
    assert "Its paths answer 503" in told
    assert Route.objects.filter(load_balancer__name="nginx").count() == 2


def test_manifests_are_not_replayed(tutorial_env: Actor) -> None:
    with pytest.raises(CommandError, match="their cluster"):
        said("07-closed.yaml", "--replay")
