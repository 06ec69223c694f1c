"""Config verification: a value that changes the structure is refused even when its grammar is switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.compiler import grammar
from apps.compiler.compile import CompileError, compile_snapshot
from apps.compiler.matching import names as route_names
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import HealthCheck, Route, ValueCondition, ValueMatch
from apps.compiler.targets.haproxy import writer
from apps.compiler.targets.haproxy.render import check, render
from apps.compiler.targets.haproxy.verify import config_verification
from apps.compiler.targets.haproxy.writer import Call, Document, Opaque, Value, quote
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

BREAKOUTS = [
    "x\n    server evil 10.6.6.6:80",
    "x } or { always_true",
    "}",
    "if",
    "-m reg .*",
    "-f /etc/passwd",
    "%[env(HOME)]",
    "x),lower(",
    "a,b",
    "x' 'y",
    'x" y',
    "x # y",
    "${HOME}",
    "\\",
]


@contextmanager
def _switched_off(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
    """These grammars accept everything, as if somebody had found a hole in them."""
    with monkeypatch.context() as patch:
        for name in names:
            module = grammar if hasattr(grammar, name) else route_names
            patch.setattr(module, name, lambda value, **_: value)
        yield


def _with_header(value: str) -> Snapshot:
    return snapshot(front(route(1, headers=(ValueCondition("X-Canary", ValueMatch.EQUALS, value),))))


def _with_path(value: str) -> Snapshot:
    return snapshot(front(route(1, path=value)))


def _with_host(value: str) -> Snapshot:
    return snapshot(front(route(1, hostname=value)))


def _with_address(value: str) -> Snapshot:
    return snapshot(front(route(1)), pools=(pool(1, servers=(server(1, address=value),)),))


def _with_check(value: str) -> Snapshot:
    return snapshot(front(route(1)), pools=(pool(1, health_check=HealthCheck(value)),))


CASES = {
    "header_value": _with_header,
    "path": _with_path,
    "prefix_path": _with_path,
    "hostname": _with_host,
    "server_address": _with_address,
    "check_path": _with_check,
}


@pytest.mark.parametrize("value", BREAKOUTS)
@pytest.mark.parametrize("name", CASES)
def test_with_the_grammar_switched_off_no_value_changes_the_structure(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case: Callable[[str], Snapshot] = CASES[name]
    honest = _shapes(compile_snapshot(case(_HONEST[name])).output.files["haproxy.cfg"])
    with _switched_off(monkeypatch, name):
        try:
            bundle = compile_snapshot(case(value)).output
        except CompileError:
            return
    assert _shapes(bundle.files["haproxy.cfg"]) == honest


_HONEST = {
    "header_value": "yes", "path": "/x", "prefix_path": "/x", "hostname": "a.example",
    "server_address": "10.0.0.1", "check_path": "/x",
}  # fmt: skip


def _shapes(config: bytes) -> list[tuple[str, str, int]]:
    return [(each.section, each.keyword, each.arguments) for each in config_verification.read_shapes(config.decode())]


@pytest.mark.parametrize("value", ["}", "if", "-m reg .*", "%[env(HOME)]", "a,b"])
def test_with_the_grammar_switched_off_config_verification_refuses_words_of_structure(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _switched_off(monkeypatch, "header_value"), pytest.raises(CompileError):
        compile_snapshot(_with_header(value))


@pytest.mark.parametrize("value", [value for value in BREAKOUTS if set(value) & set(" \n'\"#\\$")])
def test_without_quoting_config_verification_refuses_what_the_quotes_would_have_held(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _switched_off(monkeypatch, "header_value"), monkeypatch.context() as patch:
        patch.setattr(writer, "quote", lambda text: text)
        with pytest.raises((CompileError, UnicodeError)):
            compile_snapshot(_with_header(value))


@pytest.mark.parametrize(
    "hostname",
    ["a.example victim.example", "#a.example", "a.example\nb.example", "a.example/ route-9\nb.example", " a.example"],
)
def test_with_the_grammar_switched_off_a_map_takes_no_third_word_comment_or_line(
    hostname: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = _switched_off(monkeypatch, "hostname", "hostname_of_route")
    with off, pytest.raises(CompileError, match="verification refuses maps/"):
        compile_snapshot(_with_host(hostname))


def test_a_line_that_somebody_added_is_refused() -> None:
    rendering = render(_with_path("/x"))
    assert check(rendering) == []
    files = {**rendering.files, "haproxy.cfg": rendering.files["haproxy.cfg"] + b"    server evil 10.6.6.6:80\n"}
    assert check(replace(rendering, files=files))[0].code == "config_verification"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_the_reader_gets_back_every_text_that_the_writer_quotes(text: str) -> None:
    tokens = config_verification.tokenize_line(f"keyword {quote(text)} end")
    assert len(tokens) == 3
    assert tokens[1].text.encode("latin-1") == text.encode()
    assert tokens[1].expansions == 0


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=12), min_size=1, max_size=4))
def test_config_verification_accepts_what_is_opaque_and_only_counts_what_is_ours(texts: list[str]) -> None:
    document = Document()
    section = document.section("backend", "pool-1")
    for text in texts:
        section.add("http-request", "return", "string", Opaque(text), Call(("f(", Value("x"), ")")))
    written, _ = document.render()
    assert config_verification.check_config(written, document.shapes()) == []


def test_line_owners_name_the_object_of_each_line() -> None:
    routes: tuple[Route, ...] = (route(1), route(2, path="/x", methods=("GET",)))
    bundle = compile_snapshot(snapshot(front(*routes))).output
    lines = bundle.files["haproxy.cfg"].decode().split("\n")
    owned = {
        owner: [lines[number - 1] for number, each in bundle.line_owners.items() if each == owner]
        for owner in bundle.line_owners.values()
    }
    assert owned["srv-1"] == ["    server srv-1 192.0.2.10:8001 weight 100"]
    assert owned["pool-1"][0] == "backend pool-1 from http"
    assert any("method GET" in line for line in owned["route-2"])
    assert owned["lst-1"][0] == "frontend lst-1 from http"
