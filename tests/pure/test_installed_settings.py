"""Where a console is installed: which file of settings goes first, and which files of pages are brought with it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from controlplane import environment
from controlplane.admin import commands, environment_file, findings
from tests.architecture.sources import ROOT

NAME = "SPILLWAY_TRIED"


def test_what_is_set_goes_before_the_file_and_the_file_before_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, packaged = tmp_path / "environment", tmp_path / "packaged.env"
    given.write_text(f"{NAME}_A=file\n{NAME}_B='of the file'\n")
    packaged.write_text(f"{NAME}_A=package\n{NAME}_B=package\n{NAME}_C=package\n")
    for letter in "ABC":
        monkeypatch.delenv(f"{NAME}_{letter}", raising=False)
    monkeypatch.setenv(f"{NAME}_A", "set")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    environment_file.load(given, packaged)
    assert [os.environ[f"{NAME}_{letter}"] for letter in "ABC"] == ["set", "of the file", "package"]


def test_every_setting_that_a_unit_or_the_front_reads_is_known() -> None:
    folders = ("systemd", "console", "debian")
    texts = [path.read_text() for name in folders for path in (ROOT / "deploy" / name).iterdir() if path.is_file()]
    named = set(re.findall(r"\bSPILLWAY_[A-Z_]+", " ".join(texts)))
    ours = {name for name in named if not name.startswith(findings.OTHERS)}
    assert {"SPILLWAY_BIND", "SPILLWAY_LOADGEN_THREADS"} <= ours
    assert ours - environment.KNOWN.keys() - findings.ALSO_KNOWN == set()


@pytest.mark.parametrize(("brought", "collected"), [(True, False), (False, True)])
def test_files_of_pages_are_collected_where_no_package_brings_them(
    brought: bool, collected: bool, tmp_path: Path, settings: Settings
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "page.css").write_text("a{}")
    settings.STATICFILES_DIRS = [tmp_path / "source"]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.BASE_DIR = tmp_path if brought else ROOT
    settings.STATIC_ROOT = str(tmp_path / "static")
    commands.collect_pages()
    assert (tmp_path / "static" / "page.css").exists() == collected
