"""The cases as `*.yaml` say them: documents, requests, and what must happen to each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

KINDS = ("HTTPRoute", "GRPCRoute", "BackendTLSPolicy", "TLSRoute")
HERE = Path(__file__).parent
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request and what must come of it; `to` is the backend that gets it.

    `got` is of the server (`path`, `host`, `sni`, `headers`, `absent`), `answer` of the client (`headers`, `absent`;
    of a list of values one must be there). `shares` are those of many requests. `grpc` is a method and `status` then
    gRPC's code; `websocket` upgrades; `tls` says the name that is asked for (SNI), `shown` whose certificate must
    be seen; `times` repeats.
    """

    gateway: str = "http"
    host: str = "example.com"
    path: str = "/"
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    to: str | None = None
    status: int | tuple[int, ...] | None = None
    location: str | None = None
    got: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    grpc: str = ""
    websocket: bool = False
    tls: str = ""
    shown: str = ""
    times: int = 1
    marks: str = ""  # requests through which the server's header of this name says which backend it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: `extended` are the features beyond the core that it needs, as the project names them.

    A case that is `unsupported` or asks for `status` of Kubernetes alone has the reason there; what of it can be asked
    is asked all the same. `note` says what differs in one that passes. `routes` are rules: hosts × matches → one route.
    """

    name: str
    kind: str
    extended: tuple[str, ...] = ()
    unsupported: str = ""
    status: str = ""
    note: str = ""
    twins: int = 0  # routes that the compiler leaves out, because an older one takes the same requests
    gateways: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"http": {}})
    pools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    routes: tuple[Mapping[str, Any], ...] = ()
    asks: tuple[Ask, ...] = ()

    @property
    def verdict(self) -> str:
        """In the words of the table."""
        if self.unsupported:
            return "not supported"
        return "status only" if self.status else "pass"


@cache
def cases() -> tuple[Case, ...]:
    """Every case, in the order of kinds and names."""
    found = [
        _case(name, kind, said)
        for kind in KINDS
        for path in sorted(HERE.glob(f"{kind.lower()}*.yaml"))
        for name, said in yaml.safe_load(path.read_text()).items()
    ]
    assert len({each.name for each in found}) == len(found), "a case stands there twice"
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.kind), each.name)))


def _case(name: str, kind: str, said: Mapping[str, Any]) -> Case:
    plain = {key: value for key, value in said.items() if key not in ("asks", "extended", "routes")}
    asks = tuple(_made(Ask, _statuses(each), name) for each in said.get("asks", ()))
    extended, routes = tuple(said.get("extended", ())), tuple(said.get("routes", ()))
    return _made(Case, plain | {"name": name, "kind": kind, "extended": extended, "routes": routes, "asks": asks}, name)


def _statuses(said: Mapping[str, Any]) -> dict[str, Any]:
    status = said.get("status")
    return dict(said) | ({"status": tuple(status)} if isinstance(status, list) else {})


def _made(kind: type[T], said: Mapping[str, Any], name: str) -> T:
    unknown = said.keys() - {each.name for each in fields(kind)}  # type: ignore[arg-type]
    assert not unknown, f"{name} says what nobody reads: {unknown}"
    return kind(**said)
