"""Headers that depend on what a server says, in a real HAProxy: by media type, and where it has none of the name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import ResponseHeaders, Rules, TypedHeaders
from apps.compiler.policies import rule_set
from tests.conformance.plain_servers import answering
from tests.conformance.test_response_rewrite import say
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

FRAMES, ASKED = "x-frame-options", "x-asked"
ABSENT = ResponseHeaders(
    set_if_absent=(("X-Frame-Options", "DENY"), ("X-Asked", "100% of {path}"), ("X-Both", "absent")),
    remove=("Server",),
    set=(("X-Both", "set"),),
)
PAGES = TypedHeaders(
    types=("application/xhtml+xml", "text/html"),
    set=(("Content-Security-Policy", "frame-ancestors 'none'"), ("X-Path", "{path}")),
    add=(("X-Kind", "page"),),
    remove=("X-Powered-By",),
)
CASES = {"absent": Rules(response_headers=ABSENT), "pages": Rules(typed_headers=PAGES)}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    sets = {name: rule_set(rules) for name, rules in CASES.items()}
    routes = [route(number, f"{name}.example", rule_set=each.id) for number, (name, each) in enumerate(sets.items(), 1)]
    whole = replace(front(*routes, route(9, "plain.example"), listeners=(listener(1),)), rule_sets=(*sets.values(),))
    with answering(say) as port:
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
        compilation = compile_snapshot(snapshot(whole, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, tmp_path_factory.mktemp("answered")) as found:
            yield found


def got(proxy: RenderedProxy, case: str, said: Mapping[str, str]) -> Mapping[str, str]:
    """The headers of a response in which the server says these."""
    return proxy.ask("lst-1", f"{case}.example", "/a%20b", "GET", {"X-Say": json.dumps([*said.items()])}).headers


def test_a_header_is_set_where_the_server_has_sent_none(proxy: RenderedProxy) -> None:
    answer = got(proxy, "absent", {"Server": "old"})
    assert (answer[FRAMES], answer[ASKED], answer["x-both"]) == ("DENY", "100% of /a%20b", "set")
    assert "server" not in answer


@pytest.mark.parametrize("value", ["SAMEORIGIN", "a, b"])
def test_what_the_server_has_sent_stays(proxy: RenderedProxy, value: str) -> None:
    answer = got(proxy, "absent", {"X-Frame-Options": value, "X-Asked": value})
    assert (answer[FRAMES], answer[ASKED]) == (value, value)


@pytest.mark.parametrize("media_type", ["text/html", "text/html; charset=utf-8", "Text/HTML", "application/xhtml+xml"])
def test_responses_of_a_media_type_have_its_headers(proxy: RenderedProxy, media_type: str) -> None:
    answer = got(proxy, "pages", {"Content-Type": media_type, "X-Powered-By": "old", "X-Kind": "first"})
    assert answer["content-security-policy"] == "frame-ancestors 'none'"
    assert answer["x-path"] == "/a%20b"
    assert "page" in answer["x-kind"]
    assert "x-powered-by" not in answer


@pytest.mark.parametrize("said", [{"Content-Type": "application/json"}, {"Content-Type": "x; a=text/html"}, {}])
def test_other_responses_stay_as_they_are(proxy: RenderedProxy, said: dict[str, str]) -> None:
    answer = got(proxy, "pages", {**said, "X-Powered-By": "old"})
    assert answer["x-powered-by"] == "old"
    assert not {"content-security-policy", "x-path", "x-kind"} & set(answer)
    assert "content-security-policy" not in got(proxy, "plain", {"Content-Type": "text/html"})
