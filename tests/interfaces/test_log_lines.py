"""Lines of the log carry the request and the account, and nothing of the request before."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.tokens import create_token
from apps.core.log_context import subjects
from apps.core.redaction import JsonLines

pytestmark = pytest.mark.django_db


def test_a_line_of_a_request_names_its_account_and_its_id(
    client: Client, acme: Actor, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, Any]] = []
    kept = logging.Handler()
    kept.emit = lambda record: lines.append(json.loads(JsonLines().format(record)))  # type: ignore[method-assign]
    monkeypatch.setattr(logging.getLogger("django.request"), "handlers", [kept])
    token = create_token(account=acme.account, name="p", role="viewer")
    answer = client.get("/api/v1/routes/999999", headers={"Authorization": f"Bearer {token}"})
    client.get("/api/v1/routes")
    (mine, nobodys) = (line for line in lines if "/api/v1/routes" in line["message"])
    assert (mine["account"], mine["request_id"]) == ("acme", answer["X-Request-ID"])
    assert "account" not in nobodys
    assert subjects() == {}
