"""The grammar of rewrites: replacements with groups, parameters of queries."""

from __future__ import annotations

import pytest

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.definitions.shapes.traffic.policy_rewrite import Rewrite


@pytest.mark.parametrize("value", ["/", r"/a/\1", r"/\9\1-x"])
def test_a_replacement_is_a_path_with_groups(value: str) -> None:
    assert rewriting.replacement(value) == value


@pytest.mark.parametrize("value", ["", r"\1", "/a b", "/%[src]", r"/\0", "/a?b", "/a\n", "/${HOME}", "/é", "/'", 7])
def test_anything_else_is_none(value: object) -> None:
    with pytest.raises(GrammarError):
        rewriting.replacement(value)


@pytest.mark.parametrize("value", ["", "a b", "a&b", "a=b", "a(b", "a,b", "[a]", "a*", "x" * 65, None])
def test_a_parameter_holds_no_sign_of_a_query_or_pattern(value: object) -> None:
    with pytest.raises(GrammarError):
        rewriting.parameter(value)


@pytest.mark.parametrize("value", ["a b", "a&b", "%[src]", "%0a", "%0A", "%00", "%1F", "a#b", "é", "x" * 257])
def test_a_value_is_encoded_as_it_stands_in_a_url(value: str) -> None:
    with pytest.raises(GrammarError):
        rewriting.parameter_value(value)


@pytest.mark.parametrize(
    ("pattern", "groups"), [("/a", 0), ("/(a)(?:b)", 1), (r"/\((a)", 1), ("/[(](a(b))", 2), (r"/[\](](a)", 1)]
)
def test_groups_are_counted(pattern: str, groups: int) -> None:
    assert rewriting.groups_of(pattern) == groups


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({"path_regex": "/a"}, "/path_replacement"),
        ({"path_replacement": "/a"}, "/path_regex"),
        ({"path_regex": "/a", "path_replacement": "/b", "path": "/c"}, "/path"),
        ({"path_regex": "/(a)", "path_replacement": r"/\2"}, "/path_replacement"),
    ],
)
def test_fields_that_do_not_fit_together_are_named(sent: dict[str, str], pointer: str) -> None:
    assert [error.pointer for error in Rewrite.together(sent)] == [pointer]
