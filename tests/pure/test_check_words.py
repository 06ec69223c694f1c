"""What HAProxy's checks say, in words: the code is on hover, and nothing else of the text changes."""

from __future__ import annotations

import pytest

from apps.web.templatetags.checks import WORDS, check_words, checks


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L7OK/200 in 3 ms", "answered 200 in 3 ms"),
        ("L7OK in 17 ms", "answered in 17 ms"),
        ("L7STS Internal Server Error in 2 ms", "answered Internal Server Error in 2 ms"),
        ("L4CON Connection refused in 0 ms", "cannot connect: Connection refused in 0 ms"),
        ("1 of 6 servers is down: a (L4TOUT).", "1 of 6 servers is down: a (no connection in time)."),
        ("No server: a (L7STS/503), b (L7STS).", "No server: a (answered 503), b (answered with an error)."),
        ("The route XL4CON of ML7OKA is new.", "The route XL4CON of ML7OKA is new."),
    ],
)
def test_a_code_of_a_check_is_said_in_words(text: str, words: str) -> None:
    assert check_words(text) == words


def test_every_code_is_on_hover_beside_its_words() -> None:
    for code, words in WORDS.items():
        assert f'<abbr title="{code}' in checks(f"a ({code}/500)")
        assert words in checks(f"a ({code}/500)")


def test_what_a_check_says_cannot_become_html() -> None:
    assert checks("L7RSP <b>no</b>") == '<abbr title="L7RSP">invalid response</abbr> &lt;b&gt;no&lt;/b&gt;'
