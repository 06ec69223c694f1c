"""Patterns of routes: what is allowed, what is refused and why, and that nothing allowed can stall an engine."""

from __future__ import annotations

import pytest

from apps.compiler.grammar import GrammarError
from apps.compiler.matching.patterns import LONGEST_TEXT, example_of, matches, pattern, whole
from tests.hostile.corpus import VALUES

ALLOWED = (
    "/users/[0-9]+/photos",
    r".*\.php",
    "(img|images)/.*",
    "/v[1-3]/.*",
    r"/api/(v1|v2)/users/\d+(/.*)?",
    r"[a-z]{1,63}\.example",
    r"[\w.-]+@[^@/]+",
    "[^/]+/[^/]+/x",
    "/(?:a|b){1,3}",
    "%20[%a]",
)
REFUSED = (
    (".*a.*b", "regex_slow"),
    ("[a-z]*[a-z]*[a-z]*x", "regex_slow"),
    ("a?a?a?a?a?a?aaaaaa", "regex_slow"),
    ("(a|a|a|b)(a|a)(a|a)(a|a)a*b", "regex_slow"),
    ("(x*y?){3}x", "regex_slow"),
    ("(a|a)*b", "regex"),
    ("(a+)+b", "regex"),
    ("a**", "regex"),
    ("a+?", "regex"),
    ("a++", "regex"),
    ("^/a", "regex"),
    ("/a$", "regex"),
    ("(?i)a", "regex"),
    ("(?=a)", "regex"),
    (r"(a)\1", "regex"),
    (r"\bx", "regex"),
    ("[[:alpha:]]", "regex"),
    ("[a&&b]", "regex"),
    ("[z-a]", "regex"),
    ("[]", "regex"),
    ("[ab", "regex"),
    ("(x", "regex"),
    ("x)", "regex"),
    ("a{0}", "regex"),
    ("a{2,1}", "regex"),
    ("a{,2}", "regex"),
    ("a{65}", "regex"),
    ("((a{64}){64}){64}", "regex"),
    ("%[env(HOME)]", "regex"),
    ("x\ny", "control_character"),
    ("é", "not_ascii"),
    ("", "blank"),
    ("a" * 257, "too_long"),
    ("(" * 12 + "a" + ")" * 12, "regex"),
)


@pytest.mark.parametrize("text", ALLOWED)
def test_a_pattern_of_the_subset_is_allowed_and_takes_its_own_example(text: str) -> None:
    assert pattern(text) == text
    assert matches(text, example_of(text))


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_what_an_engine_could_read_otherwise_or_slowly_is_refused(text: str, code: str) -> None:
    with pytest.raises(GrammarError) as refusal:
        pattern(text)
    assert refusal.value.code == code


def test_the_whole_text_is_compared_and_no_long_one() -> None:
    assert matches("/a", "/a")
    assert not matches("/a", "/a/b")
    assert not matches("/a", "/a\n")
    assert matches(".*", "x" * LONGEST_TEXT)
    assert not matches(".*", "x" * (LONGEST_TEXT + 1))
    assert whole("/a|b") == "^(?!.{1025})(?:/a|b)$"


def test_a_hostile_value_is_refused_or_holds_nothing_that_haproxy_reads() -> None:
    allowed = []
    for _, value in VALUES:
        try:
            allowed.append(pattern(value))
        except GrammarError:
            continue
    assert allowed
    assert all(text.isascii() and text.isprintable() for text in allowed)
    assert [text for text in allowed if any(sign in text for sign in ("%[", '"', "'", "#", "${", "`"))] == []
