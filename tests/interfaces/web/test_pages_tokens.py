"""The page of tokens: a form that keeps what was ticked, a text that is shown once."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import ApiToken
from apps.accounts.tokens import create_token
from tests.interfaces.people import client_of

NEW = {"/name": "ci", "/role": "editor", "/expires_in_days": "30", "/networks": "", "/scopes": ["routes:write"]}


def test_a_token_is_shown_once_and_works(acme: Actor) -> None:
    client = client_of(acme)
    page = client.post("/tokens/new", NEW)
    text = re.findall(r"sw_\w{12}_[\w-]{43}", page.content.decode())[0]
    assert "no-store" in page["Cache-Control"]
    assert text not in client.get("/tokens").content.decode()
    program = Client(headers={"Authorization": f"Bearer {text}"})
    assert program.get("/api/v1/routes").status_code == 200
    assert program.get("/api/v1/pools").status_code == 403
    row = ApiToken.objects.get()
    assert (row.created_by, row.scopes) == ("admin-of-acme", ["routes:write"])


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"/name": "C I"}, "lower-case letters"),
        ({"/networks": "10.0.0.0/8\n10.0.0.1/8"}, "Write a network such as"),
        ({"/expires_in_days": "never"}, "Select a valid choice"),
        ({"/scopes": ["fleets:write"]}, "Select a valid choice"),
        ({"/role": "admin"}, "Select a valid choice"),
    ],
)
def test_a_refused_form_says_why_and_keeps_what_was_ticked(acme: Actor, sent: dict[str, object], words: str) -> None:
    answer = client_of(acme).post("/tokens/new", NEW | sent)
    page = answer.content.decode()
    assert (answer.status_code, words in page) == (422, True)
    assert ('value="routes:write" checked' in page) == ("/scopes" not in sent)
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_once_its_name_was_typed(acme: Actor, globex: Actor) -> None:
    create_token(account=acme.account, name="ci", role="viewer")
    row, client = ApiToken.objects.get(), client_of(acme)
    client.post(f"/tokens/{row.pk}/revoke", {"confirm": "c"})
    assert client_of(globex).post(f"/tokens/{row.pk}/revoke", {"confirm": "ci"}).status_code == 404
    assert client_of(acme, "editor").post(f"/tokens/{row.pk}/revoke", {"confirm": "ci"}).status_code == 403
    assert ApiToken.objects.get().revoked_at is None
    page = client.post(f"/tokens/{row.pk}/revoke", {"confirm": "ci"}, follow=True).content.decode()
    assert "Token ci is revoked" in page
    assert "No tokens yet" in page


def test_a_viewer_reads_which_tokens_there_are_and_cannot_make_one(acme: Actor, globex: Actor) -> None:
    create_token(account=acme.account, name="ours", role="viewer")
    create_token(account=globex.account, name="theirs", role="viewer")
    client = client_of(acme, "viewer")
    page = client.get("/tokens").content.decode()
    assert "ours" in page
    assert "theirs" not in page
    assert "New token" not in page
    assert client.get("/tokens/new").status_code == client.post("/tokens/new", NEW).status_code == 403


def test_operators_may_make_one_that_never_ends(operator: Actor) -> None:
    client_of(operator).post("/tokens/new", NEW | {"/role": "viewer", "/expires_in_days": "never"})
    assert ApiToken.objects.get().expires_at is None
