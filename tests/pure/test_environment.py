"""Settings from the environment: a wrong value stops the start with the variable's name and an example."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import ImproperlyConfigured

from controlplane import environment

NAME = "SPILLWAY_TRIED"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "KNOWN", {})


def whole() -> object:
    return environment.whole(NAME, 5, "x", least=1)


def seconds() -> object:
    return environment.seconds(NAME, 2.5, "x")


def word() -> object:
    return environment.one_of(NAME, ("on", "off"), "x")


@pytest.mark.parametrize(
    ("read", "values"),
    [
        (whole, ["many", "-1", "0", "1.5", "٣", "1_0", " "]),
        (seconds, ["soon", "-1", "nan", "inf"]),
        (word, ["ON", "yes", "of"]),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    read: Callable[[], object], values: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in values:
        monkeypatch.setenv(NAME, value)
        with pytest.raises(ImproperlyConfigured, match=rf"^Set {NAME} to .*(such as|or)"):
            read()


@pytest.mark.parametrize(("read", "given", "found"), [(whole, "7", 7), (seconds, "0.5", 0.5), (word, "off", "off")])
def test_a_right_value_counts_and_an_empty_one_is_none(
    read: Callable[[], object], given: str, found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    by_default = read()
    monkeypatch.setenv(NAME, "")
    assert read() == by_default
    monkeypatch.setenv(NAME, given)
    assert read() == found != by_default


def test_lists_forget_blanks_and_empty_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a, ,b,")
    assert environment.listed(NAME, "c", "x") == ["a", "b"]
