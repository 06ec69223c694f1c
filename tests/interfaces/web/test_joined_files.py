"""Style sheets and scripts are joined when a console starts, also where nothing can be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apps.web import bundles


def test_a_file_that_is_as_new_as_its_sources_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "JOINED", tmp_path)
    assert [path for path, _ in bundles.JoinedFiles().list(None)] == list(bundles.KINDS)
    first = (tmp_path / "css/console.css").stat().st_mtime_ns
    assert bundles.fresh("css/console.css").stat().st_mtime_ns == first
    assert {each.name for each in tmp_path.rglob("*") if each.is_file()} == {"console.css", "console.js"}


def test_a_console_starts_without_what_its_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "full").touch()
    monkeypatch.setattr(bundles, "JOINED", tmp_path / "full")
    assert list(bundles.JoinedFiles().list(None)) == []
    assert bundles.JoinedFiles().find("js/console.js") == []
    assert "pages lack css/console.css" in caplog.text


def test_an_old_file_is_better_than_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "JOINED", tmp_path)
    list(bundles.JoinedFiles().list(None))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    os.utime(tmp_path / "css/console.css", (1, 1))
    assert [path for path, _ in bundles.JoinedFiles().list(None)] == list(bundles.KINDS)
