"""The Gateway API's conformance cases through a real HAProxy, and the table of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from apps.compiler.compile import compile_snapshot
from tests.conformance.gateway_api.asking import check
from tests.conformance.gateway_api.backends import running_backends
from tests.conformance.gateway_api.cases import Ask, Case, cases
from tests.conformance.gateway_api.documents import snapshot_of
from tests.conformance.gateway_api.results import PAGE, page
from tests.conformance.gateway_api.suite import extended_features
from tests.e2e.rendered_proxy import RenderedProxy, running

pytestmark = pytest.mark.e2e
ASKED = [each for each in cases() if each.asks]


@dataclass(frozen=True, slots=True)
class Gateways:
    """One HAProxy with a listener for each gateway of each case."""

    proxy: RenderedProxy
    listeners: Mapping[tuple[str, str], str]

    def check(self, case: Case, *asks: Ask) -> None:
        """Ask all at once, since some answers are late."""
        first = next(iter(case.gateways))
        gateways = [ask.gateway if ask.gateway in case.gateways else first for ask in asks]
        ports = [self.proxy.ports[self.listeners[case.name, gateway]] for gateway in gateways]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(check, asks, ports))


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    directory = tmp_path_factory.mktemp("gateways")
    with running_backends(directory) as environment:
        snapshot, listeners = snapshot_of(ASKED, environment)
        compilation = compile_snapshot(snapshot)
        assert [each.code for each in compilation.left_out] == ["identical_route"] * sum(each.twins for each in ASKED)
        with running(compilation.output, directory) as proxy:
            yield Gateways(proxy, listeners)


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
@pytest.mark.slow(reason="timeouts and retries of the cases take half a second each")
def test_each_request_of_a_case_gets_what_it_must(gateways: Gateways, case: Case) -> None:
    gateways.check(case, *case.asks)


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": "infra-backend-v2"},
        {"status": 201},
        {"location": "http://example.org/"},
        {"got": {"path": "/another"}},
        {"got": {"headers": {"X-Another": "one"}}},
        {"got": {"absent": ["Host"]}},
        {"answer": {"headers": {"Content-Length": "none"}}},
        {"answer": {"absent": ["Content-Length"]}},
        {"shares": {"infra-backend-v1": 0.5, "infra-backend-v2": 0.5}},
        {"marks": "host"},
    ],
)
def test_what_is_not_so_is_noticed(gateways: Gateways, wrong: Mapping[str, object]) -> None:
    case = next(each for each in ASKED if each.name == "HTTPRouteSimpleSameNamespace")
    with pytest.raises(AssertionError):
        gateways.check(case, replace(case.asks[0], **wrong))  # type: ignore[arg-type]


def test_a_case_that_passes_asks_for_something_and_every_other_has_its_reason() -> None:
    for case in cases():
        assert bool(case.asks) or case.verdict != "pass", case.name
        assert not (case.unsupported and case.status), case.name
        remark = case.unsupported or case.status or case.note
        assert not remark or remark.endswith("."), case.name


def test_the_page_of_results_is_up_to_date() -> None:
    command = "python -m tests.conformance.gateway_api"
    assert PAGE.read_text() == page(), f"write it anew: {command}"


@pytest.mark.slow(reason="the module is downloaded once")
def test_every_case_of_the_project_has_a_row() -> None:
    theirs = extended_features()
    if isinstance(theirs, str):
        pytest.skip(theirs)
    assert {each.name: tuple(sorted(each.extended)) for each in cases()} == theirs
