"""No link that lets somebody in and no token gets into the log."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from django.conf import settings

from apps.core import log_context
from apps.core.redaction import JsonLines, WithoutSecrets, without_secrets

SECRET = "3LsImSYnasjNbObxP5HsCIUuLnkvJb6MVB2RL5dXIWI"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"Unprocessable Entity: /invitations/{SECRET}", "Unprocessable Entity: /invitations/…"),
        (f"GET /sign-in?next=/invitations/{SECRET} 200", "GET /sign-in?next=/invitations/… 200"),
        (f"Not Found: /sign-in/forgotten/1a-{SECRET}", "Not Found: /sign-in/forgotten/…"),
        (f"who sent Bearer sw_5500a5c870e1_{SECRET}?", "who sent Bearer sw_5500a5c870e1_…?"),
        ("Not Found: /people/invitations/7/take-back", "Not Found: /people/invitations/7/take-back"),
        ("Not Found: /sign-in/forgotten/sent", "Not Found: /sign-in/forgotten/sent"),
    ],
)
def test_a_secret_becomes_three_dots_and_the_rest_stays(text: str, kept: str) -> None:
    assert without_secrets(text) == kept


def test_arguments_and_tracebacks_are_looked_through_as_well() -> None:
    try:
        raise ValueError(f"/invitations/{SECRET}")
    except ValueError:
        arguments = (f"/invitations/{SECRET}",)
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "%s", arguments, sys.exc_info())
    assert SECRET in logging.Formatter().format(record)
    assert SECRET not in WithoutSecrets().format(record)


def test_the_log_of_the_programs_is_written_so() -> None:
    formatters: Any = settings.LOGGING["formatters"]
    assert formatters["plain"]["class"] == "apps.core.redaction.WithoutSecrets"
    assert formatters["json"]["class"] == "apps.core.redaction.JsonLines"


def test_a_line_of_json_says_what_it_is_about_and_no_secret() -> None:
    try:
        raise ValueError(f"/invitations/{SECRET}\nä")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "told %s", ("somebody",), sys.exc_info())
    with log_context.about(rollout=17), log_context.about(account="acme"):
        line = JsonLines().format(record)
    entry = json.loads(line)
    assert (entry["level"], entry["message"], entry["rollout"], entry["account"]) == (
        "ERROR", "told somebody", "17", "acme",
    )  # fmt: skip
    assert "\n" not in line
    assert SECRET not in line
    assert "ValueError: /invitations/…" in entry["exception"]
    assert json.loads(JsonLines().format(logging.LogRecord("x", 20, "f", 1, "quiet", (), None))).keys() == {
        "time", "level", "logger", "message",
    }  # fmt: skip
