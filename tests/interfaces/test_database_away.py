"""While the database is away or taken: 503 with when to ask again, in the form of each interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.exceptions import SessionInterrupted
from django.db import DatabaseError, OperationalError, ProgrammingError, connection, transaction
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.tokens import create_token
from apps.api.v1.protocol.problems import told
from apps.core import unavailable
from controlplane import failures

API = ("/api/v1/routes", "/api/v1/apply")


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


@pytest.fixture
def away(transactional_db: None, operator: Actor) -> Iterator[str]:
    """Where the database was, nobody answers any more; the text of a token that was good before."""
    token = create_token(account=operator.account, name="pipeline", role="admin")
    connection.close()
    settings = dict(connection.settings_dict)
    connection.settings_dict |= {"NAME": "/nowhere/at/all"} if connection.vendor == "sqlite" else {"PORT": "1"}
    yield token
    connection.close()
    connection.settings_dict.update(settings)


@pytest.mark.both_engines
@pytest.mark.parametrize("path", API)
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_the_api_says_503_and_when_to_ask_again(client: Client, away: str, path: str, method: str) -> None:
    bearer = {"Authorization": f"Bearer {away}"}
    answer = client.generic(method, path, "{}", "application/json", headers=bearer)
    assert (answer.status_code, answer["Content-Type"], answer["Retry-After"]) == (503, "application/problem+json", "2")
    body = answer.json()
    assert (body["status"], body["detail"], body["instance"]) == (503, unavailable.AWAY, path)


@pytest.mark.both_engines
def test_pages_say_it_in_a_sentence(client: Client, away: str, settings: Settings) -> None:
    client.cookies[settings.SESSION_COOKIE_NAME] = "x" * 32
    answer = client.get("/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert unavailable.AWAY in answer.content.decode()


@pytest.mark.both_engines
def test_hooks_say_it_too_and_health_needs_no_database(client: Client, away: str) -> None:
    assert client.post("/hooks/" + "x" * 22).status_code == 503
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 503


@pytest.mark.both_engines
@pytest.mark.parametrize("wrong", ["SELECT nothing FROM nowhere", "SELECT FROM WHERE", "SELECT nothing"])
def test_a_mistake_of_ours_is_no_moment_that_passes(db: None, wrong: str) -> None:
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(wrong)
    assert unavailable.unavailable(caught.value) is None
    body, headers = told(caught.value, "/api/v1/routes")
    assert (body["status"], headers) == (500, {})


def test_a_session_that_the_database_did_not_take_is_not_called_deleted(rf: RequestFactory) -> None:
    def interrupted(cause: Exception) -> SessionInterrupted:
        try:
            try:
                try:
                    raise cause
                except (OperationalError, ProgrammingError):
                    raise UpdateError from None
            except UpdateError:
                raise SessionInterrupted("deleted") from None
        except SessionInterrupted as error:
            return error

    busy = OperationalError("canceling statement due to lock timeout")
    assert failures.bad_request(rf.get("/"), interrupted(busy)).status_code == 503
    assert failures.bad_request(rf.get("/"), interrupted(ProgrammingError("no"))).status_code == 400
