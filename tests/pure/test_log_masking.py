"""Values of secrets leave a line before it is kept, wherever a client put them; everything else stays."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from apps.drivers.logs.contract import Record
from apps.logs.collect.masking import NOTHING, SECRETS, Masking, masked

USUAL = Masking(names=SECRETS)


def record(**said: object) -> Record:
    usual = {"time": datetime(2026, 1, 31, tzinfo=UTC), "id": "1", "node": "n1", "fleet": "f", "account": 7}
    return Record(**{**usual, "load_balancer": "front", "listener": "http", **said})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("q=shoes&token=s3cret&page=2", "q=shoes&token=***&page=2"),
        ("access_token=s3cret", "access_token=***"),
        ("apiKey=s3cret&APIKey=s3cret&api-key=s3cret", "apiKey=***&APIKey=***&api-key=***"),
        ("user[password]=s3cret", "user[password]=***"),
        ("X-Amz-Signature=s3cret&X-Amz-Date=20260131", "X-Amz-Signature=***&X-Amz-Date=20260131"),
        ("%74oken=s3cret", "%74oken=***"),
        ("token=s3cret/with=all+of%3Dit==&a=1", "token=***&a=1"),
        ("a=1;token=s3cret", "a=1;token=***"),
        ("next=https://h.example/?token=s3cret", "next=https://h.example/?token=***"),
        ("next=%2Fa%3Fpage%3D2%26token%3Ds3cret&b=2", "next=***&b=2"),
        ("next=%252Fa%253Ftoken%253Ds3cret", "next=***"),
        ("state=token%3Ds3cret%26page%3D2", "state=***"),
        ("state=token=s3cret", "state=token=***"),
        ("token=&key", "token=&key"),
        ("keyword=shoes&monkey=1&tokens=2&sort=key", "keyword=shoes&monkey=1&tokens=2&sort=key"),
        ("name=%C3%A9t%C3%A9&next=%2Fa%3Fpage%3D2", "name=%C3%A9t%C3%A9&next=%2Fa%3Fpage%3D2"),
    ],
)
def test_a_query_loses_the_values_of_such_names_and_nothing_else(query: str, kept: str) -> None:
    assert USUAL.of(record(query=query)).query == kept
    assert Masking(names=("other",)).of(record(query=query)).query == query


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/cart;jsessionid=s3cret/items", "/cart;jsessionid=***/items"),
        ("/reset/token=s3cret", "/reset/token=***"),
        ("/proxy/https%3A%2F%2Fh%3Ftoken%3Ds3cret/x", "/proxy/***/x"),
        ("/token/key", "/token/key"),
    ],
)
def test_a_path_loses_them_too(path: str, kept: str) -> None:
    assert USUAL.of(record(path=path)).path == kept


def test_a_chosen_header_loses_its_value_or_those_within_it() -> None:
    headers = {
        "authorization": "Bearer s3cret",
        "x-auth-token": "s3cret",
        "referer": "https://h.example/a?token=s3cret&b=2",
        "cookie": "theme=dark; sessionid=s3cret; lang=en",
        "user-agent": "curl/8 (key of nothing)",
    }
    kept = USUAL.of(record(headers=headers)).headers
    assert kept == {
        "authorization": "***",
        "x-auth-token": "***",
        "referer": "https://h.example/a?token=***&b=2",
        "cookie": "theme=dark; sessionid=*** lang=en",
        "user-agent": "curl/8 (key of nothing)",
    }


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("https://h.example/?password=s3cret,s3cret&page=2", "https://h.example/?password=***&page=2"),
        ('page=1, token="s3cret, s3cret", lang=en', "page=1, token=*** lang=en"),
        ("token=s3cret , s3cret", "token=***"),
    ],
)
def test_a_value_in_a_header_may_have_commas_and_spaces(value: str, kept: str) -> None:
    assert USUAL.of(record(headers={"x-sent": value})).headers == {"x-sent": kept}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("192.0.2.77, 198.51.100.9", "192.0.2.0, 198.51.100.0"),
        ("192.0.2.77:41000", "192.0.2.0:41000"),
        ('for="[2001:db8:1:2::3]:443";proto=https', 'for="[2001:db8:1::]:443";proto=https'),
        ("Mozilla/5.0 Chrome/120.0.0.7 at 12:30:45", "Mozilla/5.0 Chrome/120.0.0.7 at 12:30:45"),
    ],
)
def test_addresses_that_a_proxy_wrote_into_a_header_are_masked_as_the_clients_is(value: str, kept: str) -> None:
    line = record(client="192.0.2.77", headers={"x-forwarded-for": value})
    found = Masking(addresses=True).of(line)
    assert (found.client, found.headers) == ("192.0.2.0", {"x-forwarded-for": kept})
    assert NOTHING.of(line) == line


def test_each_account_has_its_own_wish_and_the_others_the_usual_one() -> None:
    lines = [record(account=account, query="token=s3cret&color=red", client="192.0.2.77") for account in (7, 8, 9)]
    wishes = {7: NOTHING, 8: Masking(addresses=True, names=("color",))}
    found = [(each.query, each.client) for each in masked(lines, wishes, USUAL)]
    assert found == [
        ("token=s3cret&color=red", "192.0.2.77"),
        ("token=s3cret&color=***", "192.0.2.0"),
        ("token=***&color=red", "192.0.2.77"),
    ]


@pytest.mark.parametrize("word", ["%25" * 600, "=" * 2000, "a=%" * 600, ";?/#" * 500, "&;" * 1000, "A" * 2000 + "="])
def test_no_text_of_a_client_takes_long(word: str) -> None:
    began = time.process_time()
    USUAL.of(record(query=word, path=f"/{word}", headers={"referer": word}))
    assert time.process_time() - began < 0.5
