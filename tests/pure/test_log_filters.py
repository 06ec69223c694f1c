"""The language of filters: what is guessed means what was meant, and every mistake is named."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.drivers.logs.contract import TEXT_FIELDS, Comparison, Condition, Query
from apps.drivers.logs.matching import fits
from apps.logs.filters import FilterError, parse, word_of, words_of
from tests.pure.test_log_masking import record

# What means something in a filter, and what never does. All of Unicode would take a second to look up.
ALPHABET = 'ab:-"\\,*<>=!. \n\r\t\0é19\u2028\u3000\U0001f600'


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", ()),
        ("   ", ()),
        ("status>=500", (Condition("status", Comparison.AT_LEAST, (500,)),)),
        ("status:404,503", (Condition("status", Comparison.IS, (404, 503)),)),
        ("status:5xx", (Condition("status", Comparison.IS, tuple(range(500, 600))),)),
        ("-status:5xx", (Condition("status", Comparison.IS, tuple(range(500, 600)), negated=True),)),
        ("status!=200", (Condition("status", Comparison.IS, (200,), negated=True),)),
        ("-status!=200", (Condition("status", Comparison.IS, (200,)),)),
        ("route:shop", (Condition("route", Comparison.IS, ("shop",)),)),
        ("-path:/healthz", (Condition("path", Comparison.IS, ("/healthz",), negated=True),)),
        ("path:/api/*", (Condition("path", Comparison.STARTS, ("/api/",)),)),
        ("path:*cart*", (Condition("path", Comparison.CONTAINS, ("cart",)),)),
        ('path:"/a b*"', (Condition("path", Comparison.IS, ("/a b*",)),)),
        ('path:/a" b"c', (Condition("path", Comparison.IS, ("/a bc",)),)),
        ("total>1s", (Condition("total_ms", Comparison.ABOVE, (1000,)),)),
        ("queue<=1.5s", (Condition("queue_ms", Comparison.AT_MOST, (1500,)),)),
        ("response_ms<250", (Condition("response_ms", Comparison.BELOW, (250,)),)),
        ("out>20kb", (Condition("bytes_out", Comparison.ABOVE, (20000,)),)),
        ("why:overflow", (Condition("why", Comparison.IS, ("overflow",)),)),
        ('why:""', (Condition("why", Comparison.IS, ("",)),)),
        ("client:192.0.2.0/24", (Condition("client", Comparison.WITHIN, ("192.0.2.0/24",)),)),
        ("client:192.0.2.7,192.0.2.8", (Condition("client", Comparison.IS, ("192.0.2.7", "192.0.2.8")),)),
        ("client:2001:DB8::1", (Condition("client", Comparison.IS, ("2001:db8::1",)),)),
        ("client:2001:db8::/32", (Condition("client", Comparison.WITHIN, ("2001:db8::/32",)),)),
        ("method:get", (Condition("method", Comparison.IS, ("GET",)),)),
        ("host:Shop.Example", (Condition("host", Comparison.IS, ("shop.example",)),)),
        ("trace:4bf92f35*", (Condition("trace_id", Comparison.STARTS, ("4bf92f35",)),)),
        ("-sampled:yes", (Condition("sampled", Comparison.IS, ("yes",), negated=True),)),
        ("header.X-Trace:Abc", (Condition("header.x-trace", Comparison.IS, ("Abc",)),)),
        ('status:""', (Condition("status", Comparison.AT_LEAST, (0,), negated=True),)),
        ('-total:""', (Condition("total_ms", Comparison.AT_LEAST, (0,)),)),
        ('"free text"', (Condition("", Comparison.CONTAINS, ("free text",)),)),
        ("-robots", (Condition("", Comparison.CONTAINS, ("robots",), negated=True),)),
        (r'"a \"b\" \\ c"', (Condition("", Comparison.CONTAINS, ('a "b" \\ c',)),)),
        (
            'status>=500 route:shop  -path:/healthz\n"x y"',
            (
                Condition("status", Comparison.AT_LEAST, (500,)),
                Condition("route", Comparison.IS, ("shop",)),
                Condition("path", Comparison.IS, ("/healthz",), negated=True),
                Condition("", Comparison.CONTAINS, ("x y",)),
            ),
        ),
    ],
)
def test_a_filter_means_what_one_would_guess(text: str, meant: tuple[Condition, ...]) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "word", "message"),
    [
        ("stauts:500", "stauts:500", "did you mean status?"),
        ("zzz:1", "zzz:1", "in quotes"),
        ("account:18", "account:18", "there is no field account"),
        ("time>2026", "time>2026", "beside the filter"),
        ("status:abc", "status:abc", "404 or 5xx"),
        ("status>5s", "status>5s", "404 or 5xx"),
        ("total>1 parsec total>fast", "total>fast", "250ms or 1.5s"),
        ("out>1s", "out>1s", "20kb"),
        ("status>1,2", "status>1,2", "several values"),
        ('status>""', 'status>""', 'status:"" alone'),
        ('status:200,""', 'status:200,""', 'status:"" alone'),
        ("route>shop", "route>shop", "route:value"),
        ("client:nowhere", "client:nowhere", "192.0.2.0/24"),
        ("route:", "route:", "no value"),
        ("route:shop OR route:api", "OR", "route:shop,api"),
        ("path:a*b", "path:a*b", "a star"),
        ("path:/a*,/b", "path:/a*,/b", "one word for each"),
        ('path:"/a', 'path:"/a', "does not end"),
        ('x "', '"', "does not end"),
        ('""', '""', "looks for nothing"),
        ("x" * 2001, "", "2000 characters"),
        ("x " * 41, "", "41 words"),
    ],
)
def test_a_mistake_is_named_with_what_to_write_instead(text: str, word: str, message: str) -> None:
    with pytest.raises(FilterError, match=message.replace("?", r"\?")) as caught:
        parse(text)
    assert caught.value.word == word


@given(
    field=st.sampled_from([each for each in TEXT_FIELDS if each not in ("method", "host")]),
    value=st.text(ALPHABET),
    negated=st.booleans(),
)
def test_a_click_on_any_value_asks_for_exactly_it(field: str, value: str, negated: bool) -> None:
    if len(word_of(field, value)) < 1900:
        assert parse(word_of(field, value, negated=negated)) == (Condition(field, Comparison.IS, (value,), negated),)


def test_a_click_on_what_has_no_status_asks_for_exactly_that() -> None:
    without, served = record(status=None), record(status=200)
    asked = Query(without.time, without.time + timedelta(seconds=1), parse(word_of("status", "")))
    assert [each for each in (without, served) if fits(each, asked)] == [without]


def test_a_header_is_found_however_its_name_is_written() -> None:
    found = record(headers={"user-agent": "a bot"})  # nodes write names in small letters
    for text in ("header.User-Agent:*bot*", "HEADER.user-agent:*bot*"):
        assert fits(found, Query(found.time, found.time + timedelta(seconds=1), parse(text)))


def test_words_stay_as_they_are_written() -> None:
    assert words_of(' path:"/a  b"  -route:shop "x\ty" ') == ['path:"/a  b"', "-route:shop", '"x\ty"']


@given(text=st.text(ALPHABET, max_size=40))
def test_whatever_is_written_gives_conditions_or_a_named_mistake(text: str) -> None:
    said = ""
    try:
        conditions = parse(text)
    except FilterError as error:
        conditions, said = (), error.message
    assert said.endswith((".", "?")) or all(condition.values for condition in conditions)
