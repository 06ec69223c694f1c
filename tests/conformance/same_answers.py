"""One set of routes and requests with the answers that every target must give, and what each target refuses of them.

A request that a target answers otherwise names the incompatibility by which it said so before: nothing differs unsaid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.compiler.model.shared import (
    FixedResponse,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    ValueCondition,
    ValueMatch,
    WeightedPool,
)
from apps.compiler.portability.incompatibilities import Target
from apps.compiler.questions.trace import Question
from tests.pure.compiler_fixtures import front, listener, route

EXACT = PathKind.EXACT
LONG = "/" + "x" * 150


@dataclass(frozen=True, slots=True)
class Answer:
    """What happens to a request: pools get it with their parts and `path`, or `status` is answered."""

    pools: tuple[tuple[str, float], ...] = ()
    path: str = ""
    status: int | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request and its answer; `differs` are targets that answer otherwise, with the incompatibility that says so."""

    host: str
    path: str
    answer: Answer
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    listener: str = "lst-1"
    differs: Mapping[Target, tuple[str, str, Answer]] = field(default_factory=dict)

    @property
    def question(self) -> Question:
        """The same for those who evaluate."""
        return Question(self.host, self.path, self.method, Protocol.HTTP, self.headers)

    @property
    def name(self) -> str:
        """For the test's own name."""
        said = "".join(f" {name}={value}" for name, value in self.headers.items())
        return f"{self.method} {self.host}{self.path}{said} at {self.listener}"


def _header(name: str, match: ValueMatch, value: str = "") -> ValueCondition:
    return ValueCondition(name, match, value)


def _equals(name: str, value: str) -> ValueCondition:
    return _header(name, ValueMatch.EQUALS, value)


def _to(number: int, hostname: str, path: str, pool: int, **fields: object) -> Route:
    return route(number, hostname, path, pools=(WeightedPool(f"pool-{pool}", 1),), **fields)


CHANGES = ("POST", "PUT", "PATCH", "DELETE")
PRESENT, ABSENT = ValueMatch.PRESENT, ValueMatch.ABSENT
MANY = tuple(_equals(f"X-H{number}", "1") for number in range(5))

ROUTES = (
    _to(1, "shop.example", "/", 1),
    _to(2, "shop.example", "/api", 2),
    _to(3, "shop.example", "/api/v2", 3),
    _to(4, "shop.example", "/api", 3, path_kind=EXACT),
    _to(5, "shop.example", "/api/v2", 1, methods=("POST",)),
    _to(6, "shop.example", "/api/v2", 2, headers=(_equals("X-Canary", "1"),)),
    _to(7, "*.shop.example", "/", 2),
    _to(8, "*.shop.example", "/only", 3, path_kind=EXACT),
    _to(9, "de.shop.example", "/x", 3),
    _to(10, "*.eu.shop.example", "/deep", 3),
    route(11, "old.example", "/", redirect=Redirect(301, "https")),
    route(12, "old.example", "/moved", redirect=Redirect(302, host="new.example", path="/here", keep_query=False)),
    route(13, "old.example", "/host", redirect=Redirect(301, host="new.example")),
    route(14, "old.example", "/see", redirect=Redirect(303, path="/other")),
    route(15, "old.example", "/perm", redirect=Redirect(308, "https")),
    route(16, "old.example", "/path", redirect=Redirect(302, path="/elsewhere")),
    route(17, "fixed.example", "/gone", fixed_response=FixedResponse(410)),
    route(18, "fixed.example", "/hello", fixed_response=FixedResponse(200, body="hello\n")),
    route(19, "fixed.example", "/busy", path_kind=EXACT, fixed_response=FixedResponse(503)),
    route(20, "split.example", "/", pools=(WeightedPool("pool-1", 20), WeightedPool("pool-2", 80))),
    route(21, "split.example", "/three", pools=tuple(WeightedPool(f"pool-{number}", 5) for number in (1, 2, 3))),
    route(22, "split.example", "/none", pools=(WeightedPool("pool-1", 0), WeightedPool("pool-3", 7))),
    _to(23, "rewrite.example", "/v1", 1, prefix_rewrite="/v2"),
    _to(24, "rewrite.example", "/strip", 2, prefix_rewrite="/"),
    _to(25, "absent.example", "/", 1, headers=(_header("X-Old", ABSENT),)),
    _to(26, "present.example", "/", 2, headers=(_header("X-Any", PRESENT),)),
    _to(27, "present.example", "/", 1),
    _to(28, "case.example", "/", 2, headers=(_equals("X-Kind", "Alpha"),)),
    _to(29, "case.example", "/", 1),
    _to(30, "slash.example", "/dir/", 2, path_kind=EXACT),
    _to(31, "slash.example", "/dir", 3, path_kind=EXACT),
    _to(32, "slash.example", "/", 1),
    _to(33, "coded.example", "/caf%C3%A9", 2),
    _to(34, "coded.example", "/a%20b", 3),
    _to(35, "coded.example", "/", 1),
    _to(36, "methods.example", "/", 1, methods=("GET", "HEAD")),
    _to(37, "methods.example", "/", 2, methods=CHANGES),
    _to(38, "long.example", LONG, 1),
    _to(39, "many.example", "/", 1, headers=MANY),
    _to(40, "age.example", "/", 1, headers=(_header("X-A", PRESENT),)),
    _to(41, "age.example", "/", 2, headers=(_header("X-B", PRESENT),)),
    _to(42, "age.example", "/", 3, headers=(_header("X-A", PRESENT), _header("X-C", PRESENT))),
    _to(43, "shop.xn--p1ai", "/", 1),
    _to(44, "signs.example", "/a=b", 1),
    _to(45, "signs.example", "/a~b.c:d@e+f", 2),
    _to(46, "star.example", "/", 1, headers=(_equals("X-Star", "1*2"),)),
    _to(47, "star.example", "/", 2),
)
LOAD_BALANCER: LoadBalancer = front(*ROUTES, listeners=(listener(1, port=80), listener(2, port=8080)))

REFUSED: Mapping[Target, Mapping[str, str]] = {
    Target.HAPROXY: {},
    Target.AWS: {
        "route-14": "redirect_code",
        "route-15": "redirect_code",
        "route-23": "prefix_rewrite",
        "route-24": "prefix_rewrite",
        "route-25": "header_absent",
        "route-33": "path_signs",
        "route-34": "path_signs",
        "route-38": "path_length",
        "route-39": "too_many_conditions",
        "route-43": "host_top_level",
        "route-44": "path_signs",
        "route-46": "header_wildcard",
    },
    Target.GOOGLE: {"route-18": "fixed_response_body"},
}


def _at(pool: int, path: str) -> Answer:
    return Answer(((f"pool-{pool}", 1.0),), path)


def _status(status: int, location: str | None = None) -> Answer:
    return Answer(status=status, location=location)


def _plain(host: str, *asked: tuple[str, int]) -> list[Request]:
    """Requests that reach one pool as they are."""
    return [Request(host, path, _at(pool, path)) for path, pool in asked]


def _redirected(path: str, status: int, location: str) -> Request:
    return Request("old.example", path, _status(status, location))


def _with(host: str, path: str, pool: int, method: str = "GET", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(host, path, _at(pool, path), method, named)


NOTHING = _status(404)
_DEEPER = {Target.GOOGLE: ("route-7", "wildcard_depth", _at(2, "/"))}

REQUESTS = (
    # Prefixes end at segments, the longest wins, an exact path wins over all of them.
    *_plain("shop.example", ("/", 1), ("/apiary", 1), ("/ap", 1), ("/API", 1), ("/a/api", 1)),
    *_plain("shop.example", ("/api", 3), ("/api/", 2), ("/api/x", 2), ("/api/v1", 2), ("/api/v20", 2), ("/api?x=1", 3)),
    *_plain("shop.example", ("/api/v2", 3), ("/api/v2/", 3), ("/api/v2/deep/er", 3), ("/api/v2/x?a=b&c=d", 3)),
    # Conditions: methods before headers, both before none; a route that does not match steps aside.
    _with("shop.example", "/api/v2", 1, "POST"),
    _with("shop.example", "/api/v2/x", 1, "POST"),
    _with("shop.example", "/api/v2", 3, "PUT"),
    _with("shop.example", "/api/v2", 2, X_Canary="1"),
    _with("shop.example", "/api/v2", 1, "POST", X_Canary="1"),
    _with("shop.example", "/api/v2", 2, x_canary="1"),
    _with("shop.example", "/api/v2", 3, X_Canary="2"),
    _with("shop.example", "/api/v2", 3, X_Canary="11"),
    # Hosts: in any case, by name before by wildcard; a wildcard is one label.
    Request("SHOP.Example", "/", _at(1, "/")),
    *_plain("fr.shop.example", ("/", 2), ("/x", 2), ("/only", 3), ("/only/", 2)),
    *_plain("de.shop.example", ("/x", 3), ("/x/y", 3), ("/", 2), ("/only", 3)),
    *_plain("a.eu.shop.example", ("/deep", 3), ("/deep/er", 3)),
    Request("a.eu.shop.example", "/", NOTHING),
    Request("b.a.shop.example", "/", NOTHING, differs=_DEEPER),
    Request("xshop.example", "/", NOTHING),
    Request("other.example", "/", NOTHING),
    Request("example", "/", NOTHING),
    Request(
        "shop.example:8080", "/", _at(1, "/"), listener="lst-2",
        differs={Target.AWS: ("lst-2", "port_in_host", NOTHING)},
    ),
    # Redirects keep what they do not name.
    _redirected("/", 301, "https://old.example/"),
    _redirected("/a/b?c=d", 301, "https://old.example/a/b?c=d"),
    _redirected("/moved?c=d", 302, "http://new.example/here"),
    _redirected("/moved/below", 302, "http://new.example/here"),
    _redirected("/host/x?c=d&e", 301, "http://new.example/host/x?c=d&e"),
    _redirected("/see", 303, "http://old.example/other"),
    _redirected("/perm/x?y=z", 308, "https://old.example/perm/x?y=z"),
    _redirected("/path?q=1", 302, "http://old.example/elsewhere?q=1"),
    # Fixed responses.
    Request("fixed.example", "/gone", _status(410)),
    Request("fixed.example", "/gone/too", _status(410), "POST"),
    Request("fixed.example", "/hello", _status(200)),
    Request("fixed.example", "/busy", _status(503)),
    Request("fixed.example", "/busy/x", NOTHING),
    # Weights.
    Request("split.example", "/", Answer((("pool-1", 0.2), ("pool-2", 0.8)), "/")),
    Request("split.example", "/three", Answer(tuple((f"pool-{each}", 1 / 3) for each in (1, 2, 3)), "/three")),
    Request("split.example", "/none", _at(3, "/none")),
    # Prefixes that are replaced.
    Request("rewrite.example", "/v1/x?y=z", _at(1, "/v2/x?y=z")),
    Request("rewrite.example", "/v1", _at(1, "/v2")),
    Request("rewrite.example", "/strip/x", _at(2, "/x")),
    Request("rewrite.example", "/strip", _at(2, "/")),
    Request("rewrite.example", "/v10", NOTHING),
    # Headers that are there, or not.
    _with("absent.example", "/", 1),
    Request("absent.example", "/", NOTHING, headers={"X-Old": "1"}),
    _with("present.example", "/", 1),
    _with("present.example", "/", 2, X_Any="whatever"),
    _with("present.example", "/y", 2, x_any="1"),
    _with("case.example", "/", 2, X_Kind="Alpha"),
    _with("case.example", "/", 1, X_Kind="Alphabet"),
    Request(
        "case.example", "/", _at(1, "/"), headers={"X-Kind": "alpha"},
        differs={Target.AWS: ("route-28", "header_case", _at(2, "/"))},
    ),
    _with("age.example", "/", 1, X_A="1"),
    _with("age.example", "/", 2, X_B="1"),
    _with("age.example", "/", 1, X_A="1", X_B="1"),
    _with("age.example", "/", 3, X_A="1", X_B="1", X_C="1"),
    Request("age.example", "/", NOTHING),
    _with("many.example", "/", 1, **{each.name: "1" for each in MANY}),
    _with("star.example", "/", 1, X_Star="1*2"),
    _with("star.example", "/", 2, X_Star="1x2"),
    # Final slashes, percent signs, signs, length.
    *_plain("slash.example", ("/dir/", 2), ("/dir", 3), ("/dir/x", 1), ("/", 1)),
    *_plain("coded.example", ("/caf%C3%A9", 2), ("/caf%C3%A9/x", 2), ("/a%20b/x", 3), ("/a", 1)),
    *_plain("signs.example", ("/a=b", 1), ("/a~b.c:d@e+f/x", 2)),
    *_plain("long.example", (LONG, 1), (f"{LONG}/x", 1)),
    *_plain("shop.xn--p1ai", ("/", 1)),
    # Methods.
    *(_with("methods.example", "/x", 1, method) for method in ("GET", "HEAD")),
    *(_with("methods.example", "/x", 2, method) for method in CHANGES),
    Request("methods.example", "/x", NOTHING, "OPTIONS"),
)  # fmt: skip
