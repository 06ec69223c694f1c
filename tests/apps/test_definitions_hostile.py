"""DEFINE: hostile values meet every field that exists, and each is refused with a pointer to that field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apps.core.errors import Fault, Invalid
from apps.definitions.documents import read_object

Document = dict[str, Any]

BREAKS = ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\0", "\x1b[31m"]
BLANKS = [" ", "\t", "\u00a0", "\u200b"]
SIGNS = ['"', "'", "\\", "#", ";", ",", "|", "{", "}", "(", ")"]
TEMPLATES = [
    "%[env(HOME)]",
    "%%",
    "${HOME}",
    "{{7*7}}",
    '${file("/etc/passwd")}',
    "-m reg .*",
    "-f file",
    "<script>",
    "\ud800",
]
INSIDE = [f"a{text}b.example" for text in (*BREAKS, *BLANKS, *SIGNS, *TEMPLATES)]
AROUND = [f"{text}a.example" for text in (*BREAKS, *BLANKS)] + [f"a.example{text}" for text in (*BREAKS, *BLANKS)]
SHAPES: list[Any] = ["", None, True, 17, 1.5, [], {}, ["a"], "x" * 9000]
NUMBERS: list[Any] = [
    -1,
    2**31,
    10**9,
    "1e3",
    "0x50",
    "080",
    "٨٠",
    float("nan"),
    float("inf"),
    True,
    "80",
    80.5,
    [],
    {},
]
HOSTS = [
    "*",
    "*.com",
    "a.example.",
    "A.example",
    "a_b.example",
    f"{'a' * 64}.example",
    "10.0.0.1",
    "::1",
    "a.example:80",
    "user@a.example",
    "аcme.example",
    "ａ.example",
    "a．example",
    "a..example",
    "-a.example",
    "*.*.example",
    "a.example victim.example",
]
PATHS = [
    "a",
    "//",
    "/a//b",
    "/..",
    "/a/../b",
    "/%2e%2e/",
    "/%2f",
    "/a;x",
    "/a?b",
    "/a#b",
    "/" + "a" * 8192,
    "/ } || { always_true",
    "/*",
]
ADDRESSES = [
    "unix@/var/run/docker.sock",
    "abns@x",
    "fd@3",
    "${HOME}",
    "2130706433",
    "0177.0.0.1",
    "127.1",
    "::ffff:127.0.0.1",
    "169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "224.0.0.1",
    "0.0.0.0",
    "fe80::1",
    "metadata.google.internal",
    "010.0.0.1",
    "10.0.0.1:80",
]
HEADERS = ["Host", "Content-Length", "Connection", "Transfer-Encoding", "X-Forwarded-For", "X_A", "X.A", "X-A:", "é"]

POOL: Document = {
    "protocol": "http",
    "balance": "leastconn",
    "connect_timeout_ms": 100,
    "server_timeout_ms": 100,
    "queue_timeout_ms": 100,
    "server_keepalive_ms": 100,
    "health_check": {
        "path": "/up",
        "method": "GET",
        "host": "a.example",
        "expect_status": 200,
        "interval_ms": 100,
        "timeout_ms": 100,
        "rise": 1,
        "fall": 1,
    },
    "backends": [
        {
            "region": "r",
            "capacity_scaler": 0.5,
            "limit": {"kind": "rate", "value": 1, "scope": "backend"},
            "servers": [{"name": "s", "address": "10.0.0.1", "port": 80, "weight": 1, "state": "ready"}],
        }
    ],
}
ROUTE: Document = {
    "load_balancer": "front", "hostname": "a.example", "path": "/a", "path_kind": "prefix", "methods": ["GET"],
    "headers": [{"name": "X-A", "match": "equals", "value": "v"}], "action": {"pools": [{"pool": "p", "weight": 1}]},
    "prefix_rewrite": "/b",
}  # fmt: skip
REDIRECT: Document = {
    "load_balancer": "front", "hostname": "a.example",
    "action": {"redirect": {"code": 301, "scheme": "https", "host": "b.example", "path": "/x", "keep_query": True}},
}  # fmt: skip
FIXED: Document = {
    "load_balancer": "front", "hostname": "a.example",
    "action": {"fixed_response": {"status": 200, "content_type": "text/plain", "body": "x"}},
}  # fmt: skip
FRONT: Document = {
    "fleets": ["f"],
    "listeners": [
        {"name": "l", "protocol": "https", "port": 443, "static_ip": "ip", "certificates": ["c"], "default_pool": "p"}
    ],
}
EXAMPLES: dict[str, tuple[str, Document]] = {
    "account": ("Account", {"title": "Acme", "kind": "customer"}),
    "region": ("Region", {"title": "Iowa", "latitude": 1.5, "longitude": 1.5}),
    "fleet": ("Fleet", {"region": "r", "local_development": True}),
    "node": ("Node", {"fleet": "f", "url": "https://10.0.0.1:9440", "address": "10.0.0.1", "port_offset": 1}),
    "static_ip": ("StaticIP", {"address": "203.0.113.1", "region": "r"}),
    "pool": ("Pool", POOL),
    "load_balancer": ("LoadBalancer", FRONT),
    "route": ("Route", ROUTE),
    "redirect": ("Route", REDIRECT),
    "fixed_response": ("Route", FIXED),
}
# Free text: what is harmless there is allowed, and written to files or pages by quoting alone.
FREE = {"body", "title"}


def leaves(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    """Pointer and value of every plain value of a document."""
    if isinstance(value, dict):
        return [leaf for key, entry in value.items() for leaf in leaves(entry, f"{pointer}/{key}")]
    if isinstance(value, list):
        return [leaf for index, entry in enumerate(value) for leaf in leaves(entry, f"{pointer}/{index}")]
    return [(pointer, value)]


FIELDS = [(example, pointer, value) for example, (_, spec) in EXAMPLES.items() for pointer, value in leaves(spec)]


def hostile_for(pointer: str, value: Any) -> list[Any]:
    """What this field must refuse."""
    field = pointer.rpartition("/")[2]
    if isinstance(value, bool):
        return ["true", 1, 0, "", [], {}, "yes"]
    if isinstance(value, int | float):
        wrong = [-1, 2**31, "80", True, float("nan"), [], {}, *("1e3", "0x50", "080", "٨٠")]
        return [number for number in wrong if not (field in ("latitude", "longitude") and number == -1)]
    texts: list[Any] = [
        *BREAKS,
        *[text for text in INSIDE + AROUND if field not in FREE],
        True,
        17,
        1.5,
        [],
        {},
        ["a"],
        "x" * 9000,
    ]
    extra = {"hostname": HOSTS, "path": PATHS, "prefix_rewrite": PATHS, "name": HOSTS[:3]}.get(field, [])
    if field == "body":
        return ["\0", "\x1b[31m", "\ud800", "\u2028", True, 17, [], {}, "x" * 9000]
    if field == "address":
        extra = [text for text in ADDRESSES if "servers" in pointer] or [
            "10.0.0.1:80",
            "010.0.0.1",
            "${HOME}",
            "example",
        ]
    if field == "name" and "headers" in pointer:
        extra = HEADERS
        texts = [text for text in texts if text != "\t"]
    if field == "value" and "headers" in pointer:
        # Spaces, hyphens and angle brackets inside are ordinary in header values; the compiler quotes them.
        texts = [
            text
            for text in texts
            if text not in INSIDE or not set("\n\r\t%{$").isdisjoint(text) or not text.isprintable()
        ]
    if field == "path" and "health_check" in pointer:
        extra = [text for text in PATHS if text != "/a?b"]
    return texts + list(extra)


def with_value(spec: Document, pointer: str, value: Any) -> Document:
    """A copy of the document with one value replaced."""
    changed = copy.deepcopy(spec)
    *parents, last = pointer.strip("/").split("/")
    place: Any = changed
    for part in parents:
        place = place[int(part) if isinstance(place, list) else part]
    place[int(last) if isinstance(place, list) else last] = value
    return changed


def faults_of(kind: str, spec: Document) -> tuple[Fault, ...]:
    """What is wrong with it; nothing where it is accepted."""
    try:
        read_object({"kind": kind, "name": "x", "spec": spec})
    except Invalid as invalid:
        return invalid.faults
    return ()


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_that_hostile_values_are_put_into_is_itself_accepted(example: str) -> None:
    kind, spec = EXAMPLES[example]
    assert read_object({"kind": kind, "name": "x", "spec": spec}).kind == kind


@pytest.mark.parametrize(("example", "pointer", "value"), FIELDS, ids=[f"{e}{p}" for e, p, _ in FIELDS])
def test_a_field_refuses_every_hostile_value_and_is_named(example: str, pointer: str, value: Any) -> None:
    (kind, spec), wrongs = EXAMPLES[example], hostile_for(pointer, value)
    refused = {index: faults_of(kind, with_value(spec, pointer, wrong)) for index, wrong in enumerate(wrongs)}
    passed = [wrongs[index] for index, faults in refused.items() if not faults]
    assert passed == []
    for index, faults in refused.items():
        assert any(fault.pointer.startswith(f"/spec{pointer}") for fault in faults), (wrongs[index], faults)
        assert all(fault.detail.endswith((".", "?")) for fault in faults)


@pytest.mark.parametrize(
    "name", [*INSIDE, *AROUND, "", None, 17, "A", "-a", "a-", "a" * 64, "pool-17", "defaults", "../x", "a/b"]
)
def test_a_name_refuses_every_hostile_value(name: object) -> None:
    with pytest.raises(Invalid) as caught:
        read_object({"kind": "Pool", "name": name, "spec": {}})
    assert caught.value.faults[0].pointer == "/name"


@pytest.mark.parametrize("spec", [None, [], "x", 17, True, {1: 2}])
def test_a_specification_that_is_no_object_is_refused(spec: object) -> None:
    with pytest.raises(Invalid):
        read_object({"kind": "Pool", "name": "x", "spec": spec})


def test_an_unknown_field_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(Invalid) as caught:
        read_object({"kind": "Pool", "name": "x", "spec": {"balanse": "random", "is_staff": True}})
    faults = {fault.pointer: fault for fault in caught.value.faults}
    assert "did you mean balance?" in faults["/spec/balanse"].detail
    assert faults["/spec/is_staff"].code == "unknown_field"


def test_every_fault_of_a_document_is_named_at_once() -> None:
    spec = {"hostname": "A.example", "path": "x", "action": {"pools": [{"pool": "p", "weight": -1}]}}
    with pytest.raises(Invalid) as caught:
        read_object({"kind": "Route", "name": "x", "spec": spec})
    pointers = {fault.pointer for fault in caught.value.faults}
    assert {"/spec/hostname", "/spec/path", "/spec/load_balancer", "/spec/action/pools/0/weight"} <= pointers


@pytest.mark.parametrize(
    "action",
    [{}, {"pools": []}, {"pools": [{"pool": "p", "weight": 0}]}, {"redirect": {"code": 301}},
     {"redirect": {"code": 302, "host": "b.example"}, "pools": [{"pool": "p"}]}, {"fixed_response": {"status": 99}}],
)  # fmt: skip
def test_an_action_that_says_nothing_or_two_things_is_refused(action: Document) -> None:
    with pytest.raises(Invalid):
        read_object({"kind": "Route", "name": "x", "spec": REDIRECT | {"action": action}})
