"""The hosts of a database of Nginx Proxy Manager and what became of them, side by side: answered equally."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.cli.replaying import replayed, told
from apps.importing.options import ImportOptions

pytestmark = [pytest.mark.django_db, pytest.mark.processes]
DUMP = Path(__file__).resolve().parents[1] / "import" / "npm" / "house.sql"


@pytest.mark.exhaustive
def test_hosts_redirections_lists_and_locations_are_answered_equally(operator: Actor) -> None:
    result = replayed(operator, DUMP.read_text(), {}, ImportOptions(), "nginx-proxy-manager")
    print("\n".join(told(result)))
    assert not result.unexplained, list(told(result))
    assert result.asked > 50
