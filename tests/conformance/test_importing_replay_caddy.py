"""A Caddyfile and what became of it, side by side: answered equally."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.cli.replaying import replayed, told
from apps.importing.options import ImportOptions
from tests import caddy

pytestmark = [pytest.mark.django_db, pytest.mark.processes, pytest.mark.exhaustive]
HOUSE = Path(__file__).resolve().parents[1] / "import" / "caddy" / "house.json"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    if why := caddy.why_not_built():
        pytest.fail(f"There is no Caddy: {why}")
    monkeypatch.setenv("PATH", f"{caddy.PROGRAM.parent}{os.pathsep}{os.environ['PATH']}")


def test_sites_redirects_moved_paths_and_matchers_are_answered_equally(operator: Actor) -> None:
    options = ImportOptions(passwords={"guest": "correct horse"})
    result = replayed(operator, HOUSE.read_text(), {}, options, "caddy")
    print("\n".join(told(result)))
    assert not result.unexplained, list(told(result))
    assert result.asked > 100


def test_what_cannot_be_said_differs_as_reported(operator: Actor) -> None:
    moved = {"unix//run/app.sock": "192.0.2.80:80", "/run/app.sock": "192.0.2.80:80"}
    result = replayed(operator, HOUSE.with_name("odd.json").read_text(), {}, ImportOptions(servers=moved), "caddy")
    print("\n".join(told(result)))
    assert not result.unexplained, list(told(result))
    assert result.different
