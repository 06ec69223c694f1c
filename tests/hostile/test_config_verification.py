"""With every validator switched off: config verification refuses each value that would change the structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apps.compiler.bundle import REFUSED_ADDRESSES, Bundle
from apps.compiler.checks.examination import Notes
from apps.compiler.compile import CompileError, compile_snapshot
from apps.compiler.model.fleet import BypassToken, Region, RegionNode, Snapshot
from apps.compiler.model.shared import FixedResponse, HealthCheck, Redirect, ValueCondition, ValueMatch
from apps.compiler.targets.haproxy import writer
from apps.compiler.targets.haproxy.verify import config_verification
from tests.hostile.corpus import SHARP, VALUES
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

Case = Callable[[str], Snapshot]
WHOLE = (pytest.mark.exhaustive, pytest.mark.slow(reason="hundreds of compilations"))
TEXTS = [value for _, value in VALUES if isinstance(value, str)]
SHARP_TEXTS = [value for value in SHARP if isinstance(value, str)]


def _route(**fields: Any) -> Snapshot:
    return snapshot(front(route(1, **fields), route(2, hostname="other.example")))


def _pool(**fields: Any) -> Snapshot:
    return snapshot(front(route(1)), pools=(pool(1, **fields),))


def _counted(digest: str) -> Snapshot:
    """A region that counts, in which a capacity test runs."""
    region = Region("rgn-1", "here", (RegionNode("node-1", "n1", "192.0.2.1", 9700, 9800, 9900),))
    quiet = snapshot(front(route(1)), region_id="rgn-1", regions=(region,), overflow_key="7" * 64)
    return replace(quiet, bypass_tokens=(BypassToken(digest, "pool-1"),))


CASES: dict[str, tuple[str, Case]] = {
    "hostname": ("b.example", lambda text: _route(hostname=text)),
    "path": ("/x", lambda text: _route(path=text)),
    "prefix rewrite": ("/x", lambda text: _route(path="/a", prefix_rewrite=text)),
    "method": ("PUT", lambda text: _route(methods=(text,))),
    "header name": ("X-A", lambda text: _route(headers=(ValueCondition(text, ValueMatch.EQUALS, "v"),))),
    "header value": ("v", lambda text: _route(headers=(ValueCondition("X-A", ValueMatch.EQUALS, text),))),
    "redirect host": ("b.example", lambda text: _route(redirect=Redirect(301, host=text))),
    "redirect path": ("/x", lambda text: _route(redirect=Redirect(301, host="b.example", path=text))),
    "redirect prefix": ("/x", lambda text: _route(path="/a", redirect=Redirect(301, host="c.example", prefix=text))),
    "redirect query": ("a=1", lambda text: _route(redirect=Redirect(301, "https", query=text))),
    "redirect scheme": ("https", lambda text: _route(redirect=Redirect(301, scheme=text))),
    "content type": ("text/html", lambda text: _route(fixed_response=FixedResponse(200, text, "x"))),
    "body": ("x", lambda text: _route(fixed_response=FixedResponse(200, body=text))),
    "server address": ("10.0.0.1", lambda text: _pool(servers=(server(1, address=text), server(2)))),
    "check path": ("/up", lambda text: _pool(health_check=HealthCheck(path=text))),
    "check host": ("b.example", lambda text: _pool(health_check=HealthCheck(path="/up", host=text))),
    "digest of a pass": ("a" * 64, _counted),
    "check method": ("PUT", lambda text: _pool(health_check=HealthCheck(path="/up", method=text))),
}


@pytest.fixture
def nothing_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every grammar had a hole of every form."""
    monkeypatch.setattr(Notes, "ask", lambda *_, **__: None)


def structure(bundle: Bundle) -> tuple[Any, ...]:
    """Sections, keywords and numbers of words of the configuration; lines and words of each map that it reads."""
    shapes = config_verification.read_shapes(bundle.files["haproxy.cfg"].decode())
    maps = {
        path: [len(line.split()) for line in content.decode().splitlines()]
        for path, content in bundle.files.items()
        if path.startswith("maps/") and path != REFUSED_ADDRESSES
    }
    return [(each.section, each.keyword, each.arguments) for each in shapes], maps


def outcome(case: Case, text: str, honest: tuple[Any, ...]) -> str:
    """refused, harmless (the same structure as an honest value has) or changed."""
    try:
        bundle = compile_snapshot(case(text)).output
    except (CompileError, UnicodeError):
        return "refused"
    try:
        return "harmless" if structure(bundle) == honest else "changed"
    except config_verification.TokenError:  # what HAProxy itself would stumble over
        return "changed"


@pytest.mark.usefixtures("nothing_is_validated")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("step", [40, pytest.param(3, marks=WHOLE)])
def test_no_value_changes_the_structure(name: str, step: int) -> None:
    honest_text, case = CASES[name]
    honest = structure(compile_snapshot(case(honest_text)).output)
    # Every text goes into some fields, the sharp ones into all; all into all takes minutes and finds the same.
    texts = {*TEXTS[list(CASES).index(name) % step :: step], *SHARP_TEXTS}
    found = {text: outcome(case, text, honest) for text in texts}
    # An empty text is an ordinary value there: no body, no Host header, a bare connect, the host of the request.
    ordinary = {""} if name in ("body", "check host", "check path", "redirect host") else set()
    assert [text for text, what in found.items() if what == "changed" and text not in ordinary] == []


@pytest.mark.usefixtures("nothing_is_validated")
def test_without_verification_and_quotes_values_would_change_the_structure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest_text, case = CASES["header value"]
    honest = structure(compile_snapshot(case(honest_text)).output)
    monkeypatch.setattr("apps.compiler.compile.check", lambda _: [])
    monkeypatch.setattr(writer, "quote", lambda text: text)
    assert sum(outcome(case, text, honest) == "changed" for text in TEXTS[::8]) > 6
