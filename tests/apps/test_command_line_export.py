"""The command export: what it asks the server for, and the file that it writes once."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.cli.client.commands.exporting import FORMATS as OFFERED
from apps.cli.client.main import main
from apps.exporting.services import FORMATS
from tests.apps.test_command_line_verbs import Server, server

__all__ = ["server"]
FRONT = {"id": 3, "name": "front", "account": "operator"}


def test_the_archive_is_written_as_it_comes_and_never_over_a_file(
    server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.put("GET load-balancers", {"items": [FRONT], "next_cursor": None})
    server.put("GET load-balancers/operator/front/export", "what the server sent")
    file = tmp_path / "front.zip"
    words = ["export", "front", "--format", "gateway-api", "--fleet", "eu", "--to", str(file)]
    assert main(words) == 0
    assert file.read_text() == '"what the server sent"'
    assert server.asked[-1][1] == {"format": "gateway-api", "fleet": "eu"}
    assert "README.md" in capsys.readouterr().out
    assert main(words) == 1
    assert "Name a new file" in capsys.readouterr().err


def test_it_offers_the_formats_that_there_are() -> None:
    assert tuple(FORMATS) == OFFERED
