"""Settings from the environment: a wrong or an empty value stops the start with the variable's name and an example."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable

import pytest
from django.core.exceptions import ImproperlyConfigured

from controlplane import environment, settings
from controlplane.environment import Variable
from tests.architecture.sources import ROOT

NAME = "SPILLWAY_TRIED"
TEXTS = [" ", "many", "-1", "0.5", "https://", "a b", "x:y:z", "://", "amqp://guest@localhost:5672//", "٣", ","]
# What holds whatever people write: names, identifiers, and keys of earlier days.
ANYTHING_GOES = {
    "SPILLWAY_SECRET_KEY_FALLBACKS",
    "SPILLWAY_OIDC_CLIENT_ID",
    "SPILLWAY_OIDC_CLIENT_SECRET",
    "SPILLWAY_OIDC_NAME",
}
EMPTY_IN_PRODUCTION = {"SPILLWAY_WEBHOOK_NETWORKS"}
RIGHT = {
    "SPILLWAY_ENV": "production",
    "SPILLWAY_SECRET_KEY": "k" * 40,
    "SPILLWAY_TOKEN_PEPPERS": "1:" + "p" * 20,
    "SPILLWAY_STATE_URL": "https://console.example",
}
SETTINGS = sorted(environment.KNOWN.values(), key=lambda each: each.name)


@pytest.fixture
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "KNOWN", {})
    monkeypatch.setattr(environment, "WRONG", {})


def load(monkeypatch: pytest.MonkeyPatch, **given: str) -> dict[str, object]:
    """The settings of a machine in production whose environment says this beside what it must."""
    known = dict(environment.KNOWN)
    for name in list(os.environ):
        if name.startswith("SPILLWAY_") or name == "CELERY_BROKER_URL":
            monkeypatch.delenv(name)
    for name, value in {**RIGHT, **given}.items():
        monkeypatch.setenv(name, value)
    try:
        return runpy.run_path(str(ROOT / "controlplane" / "settings.py"))
    finally:
        monkeypatch.undo()
        environment.KNOWN.clear()
        environment.KNOWN.update(known)


def refusal(monkeypatch: pytest.MonkeyPatch, **given: str) -> str:
    """Why the start is refused; empty where it is not."""
    try:
        load(monkeypatch, **given)
    except ImproperlyConfigured as error:
        return str(error)
    finally:
        environment.WRONG.clear()
    return ""


def test_what_is_right_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(monkeypatch) == ""


@pytest.mark.parametrize("variable", SETTINGS, ids=lambda each: each.name)
def test_every_setting_refuses_what_it_cannot_be(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [text for text in TEXTS if not variable.shape.fits(text)]
    if variable.name in ANYTHING_GOES:
        assert wrong == []
        return
    said = refusal(monkeypatch, **{variable.name: wrong[0]})
    assert said.startswith(f"Set {variable.name} to {variable.shape.words}, such as {variable.shape.example}")
    assert variable.shape.example != "…"
    assert wrong[0] not in said or len(wrong[0]) < 4, "it may be a secret"


@pytest.mark.parametrize("variable", SETTINGS, ids=lambda each: each.name)
def test_an_empty_setting_is_refused_unless_nothing_is_its_default(
    variable: Variable, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refusal(monkeypatch, **{variable.name: ""})
    if variable.optional or variable.name in EMPTY_IN_PRODUCTION:
        assert said == ""
    else:
        assert f"Set {variable.name} to" in said


@pytest.mark.parametrize("variable", SETTINGS, ids=lambda each: each.name)
def test_the_example_of_an_error_would_be_taken(variable: Variable) -> None:
    if " of `" not in variable.shape.example:
        assert variable.shape.fits(variable.shape.example)


def test_everything_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(monkeypatch, SPILLWAY_REDIS_URL="", SPILLWAY_WEB_THREADS="many", SPILLWAY_SECRET_KEY="short")
    assert [line.split("Set ")[1].split()[0] for line in said.splitlines()] == [
        "SPILLWAY_SECRET_KEY",
        "SPILLWAY_WEB_THREADS",
        "SPILLWAY_REDIS_URL",
    ]


@pytest.mark.parametrize("name", ["SPILLWAY_REDIS_URL", "CELERY_BROKER_URL"])
def test_no_broker_speaks_amqp(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"Set {name} to a URL with redis://" in refusal(monkeypatch, **{name: "amqp://guest@localhost:5672//"})
    assert str(load(monkeypatch)["CELERY_BROKER_URL"]).startswith("redis://")


@pytest.mark.parametrize("given", ["", "1", "abc", "1:short", "1:longenough,two:longenough"])
def test_peppers_are_numbered_secrets(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Set SPILLWAY_TOKEN_PEPPERS to numbered secrets" in refusal(monkeypatch, SPILLWAY_TOKEN_PEPPERS=given)


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize(
    ("read", "given", "found"),
    [
        (lambda: environment.whole(NAME, 5, "x", least=1), "7", 7),
        (lambda: environment.seconds(NAME, 2.5, "x"), "0.5", 0.5),
        (lambda: environment.one_of(NAME, ("on", "off"), "x"), "off", "off"),
    ],
)
def test_a_right_value_counts(
    read: Callable[[], object], given: str, found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    by_default = read()
    monkeypatch.setenv(NAME, given)
    assert read() == found != by_default
    assert environment.WRONG == {}


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize("given", ["many", "-1", "0", "1.5", "٣", "1_0", " ", "9" * 5000])
def test_a_whole_number_is_nothing_else(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, given)
    assert environment.whole(NAME, 5, "x", least=1) == 5
    assert list(environment.WRONG) == [NAME]


@pytest.mark.usefixtures("_forgotten")
def test_lists_forget_blanks_and_empty_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a, ,b,")
    assert environment.listed(NAME, "c", "x") == ["a", "b"]


def test_a_blank_between_peppers_is_part_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(monkeypatch, SPILLWAY_TOKEN_PEPPERS="2:newer-pepper, 1:older-pepper")["TOKEN_PEPPERS"]
    assert found == {"2": "newer-pepper", "1": "older-pepper"}


def test_what_holds_a_password_is_marked_as_secret() -> None:
    holding = {each.name for each in SETTINGS if any(word in each.what + each.name for word in ("SECRET", "PEPPER"))}
    assert holding <= {each.name for each in SETTINGS if each.secret}
    urls = {"SPILLWAY_DATABASE_URL", "SPILLWAY_REDIS_URL", "SPILLWAY_EMAIL_URL"}
    assert urls <= {each.name for each in SETTINGS if each.secret}
    assert settings.DEVELOPMENT
