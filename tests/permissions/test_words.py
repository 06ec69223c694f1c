"""No page and no answer of the API calls a thing by Python text, an internal id or a digest: every GET of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.fleet.models import Node
from apps.observe.services import store_contact_errors
from apps.stacks.models import StackRun
from tests.permissions.asking import send, undone
from tests.permissions.callers import ADMIN, OWNER, Caller
from tests.permissions.env import Env
from tests.permissions.rows import Row
from tests.permissions.table import TABLE
from tests.said import unsaid, words_of

pytestmark = pytest.mark.django_db
PARTS = 4  # so that several workers share the URLs
READS = [row for row in TABLE if row.method == "GET"]


def found_in(env: Env, rows: Iterable[Row], caller: Caller) -> Iterator[tuple[str, list[str]]]:
    """URLs with what must not stand there."""
    for row in rows:
        with undone():
            hits = unsaid_in(send(env, row, caller))
        if hits:
            yield str(row), hits[:5]


def unsaid_in(answer: Any) -> list[str]:
    """What stands in an answer and must not."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return unsaid(words_of(answer.headers.get("content-type", ""), body.decode("utf-8", "replace")))


def put_contact_errors(env: Env) -> None:
    """A node says of a listener by our id that another program answers there."""
    store_contact_errors({env.objects["node"].pk: "lst-1: another program answers."})


@pytest.mark.exhaustive  # of what operators read it is asked in test_query_words.py, which asks every URL anyway
@pytest.mark.slow(reason="asks every URL of the table")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_url_names_a_thing_by_what_only_we_know(env: Env, part: int) -> None:
    put_contact_errors(env)
    rows = READS[part::PARTS]
    assert len(rows) > 40
    assert dict(found_in(env, rows, OWNER)) == {}


def test_no_run_of_a_stack_does_either(env: Env) -> None:
    client: Client = env.clients["operators", "admin"]
    for run in StackRun.objects.all():
        answer = client.get(reverse("web:stack-run", args=(run.pk,)))
        assert answer.status_code == 200
        assert unsaid(words_of("html", answer.content.decode())) == []


@pytest.mark.exhaustive
@pytest.mark.slow(reason="renders the page of a node in the whole world")
def test_control_a_node_whose_words_were_not_translated_is_found(env: Env) -> None:
    Node.objects.filter(pk=env.objects["node"].pk).update(name="lst-1")
    node = [row for row in READS if row.url in ("web:node", "api:nodes-detail")]
    assert dict(found_in(env, node, ADMIN))
