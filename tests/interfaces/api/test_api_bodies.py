"""Bodies of the API: rights come before bytes, and no account has every thread with large ones."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client, RequestFactory

from apps.accounts.actors import Actor
from apps.accounts.tokens import create_token
from apps.api.v1.protocol import bodies
from apps.core.errors import MOST_ERRORS

pytestmark = pytest.mark.django_db

LARGE = b"[" + b"a, " * (bodies.LARGE // 3) + b"a]"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a body was read."""
    found: list[int] = []
    read = WSGIRequest.read

    def counted(self: WSGIRequest, *args: Any, **kwargs: Any) -> bytes:
        found.append(1)
        content: bytes = read(self, *args, **kwargs)
        return content

    monkeypatch.setattr(WSGIRequest, "read", counted)
    return found


def put(actor: Actor, role: str = "admin", scopes: tuple[str, ...] = (), **headers: str) -> Any:
    """An apply of a large YAML text."""
    text = create_token(account=actor.account, name="t", role=role, scopes=list(scopes))
    client = Client(headers={"Authorization": f"Bearer {text}"})
    return client.put("/api/v1/apply", LARGE, content_type="application/yaml", headers=headers)


@pytest.mark.parametrize(("role", "scopes"), [("viewer", ()), ("admin", ("*:read",)), ("admin", ("routes:read",))])
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "once"}], ids=["plain", "once"])
def test_who_may_write_nothing_is_refused_before_a_byte_is_read(
    acme: Actor, reads: list[int], role: str, scopes: tuple[str, ...], headers: dict[str, str]
) -> None:
    assert put(acme, role, scopes, **headers).status_code == 403
    assert reads == []


@pytest.mark.parametrize("scopes", [(), ("routes:write",), ("*:write",)])
def test_who_may_write_something_is_read(acme: Actor, reads: list[int], scopes: tuple[str, ...]) -> None:
    assert put(acme, "editor", scopes).status_code == 422
    assert reads


def test_a_third_large_body_of_an_account_waits_and_is_not_read(acme: Actor, globex: Actor, reads: list[int]) -> None:
    request = RequestFactory().put("/", LARGE)
    with bodies.turn(request, acme.account.pk), bodies.turn(request, acme.account.pk):
        refused = put(acme)
        assert (refused.status_code, refused["Retry-After"]) == (429, str(bodies.AGAIN_S))
        assert reads == []
        assert put(globex).status_code == 422
    assert put(acme).status_code == 422


def test_small_bodies_never_wait(acme: Actor) -> None:
    large = RequestFactory().put("/", LARGE)
    text = create_token(account=acme.account, name="t", role="editor")
    client = Client(headers={"Authorization": f"Bearer {text}"})
    with bodies.turn(large, acme.account.pk), bodies.turn(large, acme.account.pk):
        assert client.put("/api/v1/apply", b"[]", content_type="application/json").status_code != 429


def test_a_body_that_does_not_say_its_size_counts_as_large(acme: Actor) -> None:
    chunked = RequestFactory().put("/", b"", headers={"Transfer-Encoding": "chunked"})
    with bodies.turn(chunked, acme.account.pk), bodies.turn(chunked, acme.account.pk):
        assert put(acme).status_code == 429


def test_a_thousand_errors_are_told_and_not_every_one_of_a_hostile_body(acme: Actor) -> None:
    text = create_token(account=acme.account, name="t", role="admin", scopes=[])
    client = Client(headers={"Authorization": f"Bearer {text}"})
    spec = {f"field-{number}": 1 for number in range(90)}

    def errors(count: int) -> list[dict[str, str]]:
        body = {"objects": [{"kind": "Zone", "name": f"z-{number}", "spec": spec} for number in range(count)]}
        answer = client.put("/api/v1/apply", body, content_type="application/json")
        assert answer.status_code == 422
        found: list[dict[str, str]] = answer.json()["errors"]
        return found

    few = errors(5)
    assert {each["pointer"] for each in few} >= {f"/objects/{index}/spec/field-89" for index in range(5)}
    many = errors(20)
    assert len(many) == MOST_ERRORS + 1
    assert many[-1]["detail"] == "There are more than 1,000 errors; correct these first."


def test_a_query_of_too_many_words_is_a_problem_like_every_other(acme: Actor) -> None:
    client = Client(headers={"Authorization": f"Bearer {create_token(account=acme.account, name='t', role='admin')}"})
    answer = client.get("/api/v1/routes?" + "&".join(f"a{at}=1" for at in range(1001)))
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert "more than 1,000 words" in answer.json()["detail"]
