"""Which servers EndpointSlices of Kubernetes mean."""

from __future__ import annotations

from typing import Any

import pytest

from apps.definitions.server_sources.deciding import FoundServer, decide
from apps.definitions.server_sources.kubernetes.endpoint_slices import servers_of
from apps.definitions.server_sources.watched import Unclear
from apps.definitions.shapes.servers.source import read_source
from tests.api_server import Slice, endpoint, endpoint_slice

WEB = "kubernetes://prod/shop/web"


def found(*slices: Slice, source: str = WEB) -> list[str]:
    return [
        f"{each.address}:{each.port}{'' if each.weight is None else f' {each.weight}'}{' leaving' * each.leaving}"
        for each in servers_of(slices, read_source(source))
    ]


@pytest.mark.parametrize(
    ("ready", "serving", "terminating", "is_server"),
    [
        (True, True, False, "10.0.0.1:8080"),
        (None, None, None, "10.0.0.1:8080"),
        (False, False, False, None),
        (False, True, False, None),
        (False, True, True, "10.0.0.1:8080 leaving"),
        (False, False, True, None),
        (False, None, True, None),
        (True, True, True, "10.0.0.1:8080 leaving"),  # publishNotReadyAddresses
    ],
)
def test_ready_pods_are_servers_and_those_that_end_are_drained(
    ready: bool | None, serving: bool | None, terminating: bool | None, is_server: str | None
) -> None:
    said = {"ready": ready, "serving": serving, "terminating": terminating}
    conditions = {key: value for key, value in said.items() if value is not None}
    one = endpoint_slice("a", "web", endpoint("10.0.0.1", conditions=conditions))
    assert found(one) == ([is_server] if is_server else [])


def test_only_slices_of_the_service_count_and_a_pod_of_two_families_is_one_server() -> None:
    pod = {"targetRef": {"kind": "Pod", "name": "web-0", "uid": "u1"}}
    six = endpoint_slice("a6", "web", endpoint("fd00::1", **pod), addressType="IPv6")
    four = endpoint_slice("b4", "web", endpoint("10.0.0.1", **pod), endpoint("10.0.0.2"))
    assert found(six, four, endpoint_slice("c", "other", endpoint("10.0.0.9"))) == ["10.0.0.1:8080", "10.0.0.2:8080"]
    (first, _) = servers_of([six, four], read_source(WEB))
    assert first.hint == "web-0"


def test_a_port_is_named_by_its_number_its_name_or_by_being_the_only_one() -> None:
    two = [{"name": "http", "port": 8080}, {"name": "admin", "port": 9000}]
    several = endpoint_slice("a", "web", endpoint("10.0.0.1"), ports=two)
    assert found(several, source=f"{WEB}:admin") == ["10.0.0.1:9000"]
    assert found(several, source=f"{WEB}:7000") == ["10.0.0.1:7000"]
    assert found(several, source=f"{WEB}:other") == []
    with pytest.raises(Unclear, match="several ports; add one of them to servers_from: admin, http"):
        found(several)


def test_a_zone_leaves_out_the_others_and_a_weight_is_said_by_annotation_or_label() -> None:
    near, far = endpoint("10.0.0.1", zone="a"), endpoint("10.0.0.2", zone="b")
    assert found(endpoint_slice("s", "web", near, far), source=f"{WEB}?zone=b") == ["10.0.0.2:8080"]
    annotated = endpoint_slice("s", "web", near, metadata={"annotations": {"spillway/weight": "7"}})
    assert found(annotated) == ["10.0.0.1:8080 7"]
    with pytest.raises(Unclear, match="no whole number from 0 to 256"):
        found(endpoint_slice("s", "web", near, metadata={"annotations": {"spillway/weight": "300"}}))


@pytest.mark.parametrize("fields", [{"endpoints": None}, {"ports": None}, {"ports": [{"name": "x"}]}])
def test_what_a_slice_leaves_out_is_no_server(fields: dict[str, Any]) -> None:
    assert found(endpoint_slice("a", "web", endpoint("10.0.0.1"), **fields)) == []


def test_pods_that_end_alone_never_empty_a_backend_and_their_absence_makes_no_answer_short() -> None:
    known = {(f"10.0.0.{number}", 80): f"s{number}" for number in range(1, 5)}
    ends = [FoundServer(f"10.0.0.{number}", 80, leaving=True) for number in (1, 2, 3)]
    assert decide(known, ends, 0).servers is None
    rest = FoundServer("10.0.0.4", 80)
    assert len(decide(known, [*ends, rest], 0).servers or ()) == 4
    left = list(known)[:3]
    assert list(decide(known, [rest], 0, left).servers or ()) == ["s4"]
    assert decide(known, [rest], 0).servers is None  # the negative control


@pytest.mark.parametrize(
    "text",
    ["kubernetes://", "kubernetes://prod/shop", "kubernetes://prod/shop/web:0", "kubernetes://prod/shop/web:99999",
     "kubernetes://prod/shop/web:-a", "kubernetes://prod/../web", "kubernetes://prod/shop/web?zone=",
     "kubernetes://u@prod/shop/web", "kubernetes://prod/shop/web\n"],
)  # fmt: skip
def test_what_names_no_service_is_refused_in_words(text: str) -> None:
    from apps.compiler.grammar import GrammarError

    with pytest.raises(GrammarError, match="Write the Service as kubernetes://cluster/namespace/service:port"):
        read_source(text)
