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
    call_command("import", str(MANIFESTS / name), *words, "--fleet", FLEET, stdout=out)
    return out.getvalue()


def test_manifests_are_reported_and_applied(tutorial_env: Actor) -> None:
    told = said("07-closed.yaml", "--apply")
    assert "nginx.ingress.kubernetes.io/auth-url: https://sso.example.com/verify" in told
    assert "Its paths answer 503" in told
    assert Route.objects.filter(load_balancer__name="nginx").count() == 2


def test_manifests_are_not_replayed(tutorial_env: Actor) -> None:
    with pytest.raises(CommandError, match="their cluster"):
        said("07-closed.yaml", "--replay")


def test_a_folder_of_manifests_is_one_import_and_neighbours_of_a_file_are_not(
    tutorial_env: Actor, tmp_path: Path
) -> None:
    text = (MANIFESTS / "07-closed.yaml").read_text()
    ingress: list[str] = []
    rest: list[str] = []
    for document in text.split("\n---\n"):
        (ingress if "kind: Ingress\n" in document else rest).append(document)
    (tmp_path / "ingress.yaml").write_text("\n---\n".join(ingress))
    (tmp_path / "services.yml").write_text("\n---\n".join(rest))
    (tmp_path / "notes.txt").write_text("{{ not YAML")
    told = said(str(tmp_path))
    assert f"({tmp_path / 'ingress.yaml'})" in told
    assert "Before this can be applied" not in told
    both = said(str(tmp_path / "ingress.yaml"), str(tmp_path / "services.yml"))
    assert both == told
    alone = said(str(tmp_path / "ingress.yaml"))
    assert "Before this can be applied" in alone
    assert "(--map-servers" in alone


def test_several_files_that_are_no_manifests_are_refused(tutorial_env: Actor, tmp_path: Path) -> None:
    (tmp_path / "a.cfg").write_text("frontend a\n")
    (tmp_path / "b.cfg").write_text("frontend b\n")
    with pytest.raises(CommandError, match="Name one file"):
        said(str(tmp_path / "a.cfg"), str(tmp_path / "b.cfg"))
    with pytest.raises(CommandError, match="no file"):
        said(str(tmp_path / "c.yaml"), str(tmp_path / "b.cfg"))
    with pytest.raises(CommandError, match=r"\.yaml"):
        said(str(tmp_path))
