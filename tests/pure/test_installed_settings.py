"""Where a console is installed: which file of settings goes first, and which files of pages are brought with it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from apps.system.backups.reading import Found
from controlplane import environment
from controlplane.admin import commands, environment_file, findings, initial, recovery
from controlplane.admin.__main__ import parser
from controlplane.admin.refusal import Refused
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


def test_a_first_password_that_would_be_refused_in_the_end_is_refused_at_once(
    tmp_path: Path,
) -> None:
    password, settings = tmp_path / "password", tmp_path / "environment"
    password.write_text("q1w2e3r4t5y6\n")
    words = [
        "--environment",
        str(settings),
        "init",
        "--yes",
        "--url",
        "https://console.example",
        "--var",
        str(tmp_path),
    ]
    with pytest.raises(Refused, match="too common"):
        initial.write_settings(parser().parse_args([*words, "--password-file", str(password)]))
    assert not settings.exists()


def test_a_key_of_before_is_known_behind_a_blank_too(tmp_path: Path) -> None:
    path = tmp_path / "environment"
    path.write_text(f"SPILLWAY_SECRET_KEY={'n' * 40}\nSPILLWAY_SECRET_KEY_FALLBACKS={'m' * 40}, {'k' * 40}\n")
    options = parser().parse_args(["--environment", str(path), "restore", "backup"])
    found = Found(settings={"environment": {"SPILLWAY_SECRET_KEY": "k" * 40}})
    assert recovery._settings(found, options)["SPILLWAY_SECRET_KEY"] == "n" * 40


def test_an_authority_whose_key_is_kept_elsewhere_is_never_replaced(tmp_path: Path) -> None:
    call_command("issue_certificates", out=tmp_path, name=["edge-1"], verbosity=0)
    (tmp_path / "ca.key").rename(tmp_path / "elsewhere")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    call_command("issue_certificates", out=tmp_path, name=["edge-1"], verbosity=0)
    with pytest.raises(CommandError, match="Nothing was written"):
        call_command("issue_certificates", out=tmp_path, name=["edge-2"], verbosity=0)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "elsewhere").rename(tmp_path / "ca.key")
    call_command("issue_certificates", out=tmp_path, name=["edge-2"], verbosity=0)
    assert (tmp_path / "edge-2.pem").exists()
    assert (tmp_path / "ca.pem").read_bytes() == before["ca.pem"]
