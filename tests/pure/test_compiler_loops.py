"""A redirect that leads back to its own route is found, and one that something more specific ends is not."""

from __future__ import annotations

import pytest

from apps.compiler.checks.snapshot import examine
from apps.compiler.model.shared import Listener, PathKind, Protocol, Redirect, Route, ValueCondition, ValueMatch
from apps.compiler.questions.loops import loop_of, may_loop
from tests.pure.compiler_fixtures import front, listener, route, snapshot

HTTP, HTTPS = listener(1), listener(2, protocol=Protocol.HTTPS)
TO_HTTPS = Redirect(308, scheme="https")
CANARY = (ValueCondition("X-Canary", ValueMatch.PRESENT),)


def redirecting(redirect: Redirect, hostname: str = "a.example", path: str = "/", **fields: object) -> Route:
    """A route that does nothing else."""
    return route(1, hostname, path, redirect=redirect, **fields)


@pytest.mark.parametrize(
    ("own", "listeners", "loops_on"),
    [
        (redirecting(TO_HTTPS), (HTTP, HTTPS), Protocol.HTTPS),
        (redirecting(TO_HTTPS), (HTTP,), None),
        (redirecting(TO_HTTPS, scheme="http"), (HTTP, HTTPS), None),
        (redirecting(TO_HTTPS, scheme="https"), (HTTP, HTTPS), Protocol.HTTPS),
        (redirecting(Redirect(308, scheme="http")), (HTTP, HTTPS), Protocol.HTTP),
        (redirecting(Redirect(301, host="a.example")), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(301, host="www.a.example")), (HTTP,), None),
        (redirecting(Redirect(301, host="www.a.example"), "*.a.example"), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(302, path="/old/new"), path="/old"), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(302, path="/new"), path="/old"), (HTTP,), None),
        (redirecting(Redirect(302, path="/old/new"), path="/old", path_kind=PathKind.EXACT), (HTTP,), None),
        (redirecting(Redirect(302, prefix="/old/new"), path="/old"), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(302, prefix="/new"), path="/old"), (HTTP,), None),
        (redirecting(Redirect(302, port=HTTP.port)), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(302, port=HTTP.port + 1)), (HTTP,), None),
        (redirecting(Redirect(302, path="/"), headers=CANARY), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(307, path="/"), methods=("POST",)), (HTTP,), Protocol.HTTP),
        (redirecting(Redirect(303, path="/"), methods=("POST",)), (HTTP,), None),
        (redirecting(Redirect(303, path="/"), methods=("HEAD",)), (HTTP,), Protocol.HTTP),
    ],
)
def test_it_leads_to_itself_where_the_next_request_comes_to_it_again(
    own: Route, listeners: tuple[Listener, ...], loops_on: Protocol | None
) -> None:
    assert loop_of(own, front(own, listeners=listeners)) == loops_on


def test_a_more_specific_route_ends_the_circle() -> None:
    own = redirecting(Redirect(302, path="/home"))
    home = route(2, path="/home", path_kind=PathKind.EXACT)
    assert loop_of(own, front(own)) is Protocol.HTTP
    assert loop_of(own, front(own, home)) is None
    assert may_loop(own, front(own, home))


def test_it_is_left_out_and_named_and_the_rest_goes_live() -> None:
    own, other = redirecting(TO_HTTPS), route(2, "b.example")
    found = examine(snapshot(front(own, other)))
    assert found.left_out == ()
    https = listener(2, protocol=Protocol.HTTPS, certificate_ids=())
    found = examine(snapshot(front(own, other, listeners=(HTTP, https))))
    assert [(each.object_id, each.code) for each in found.left_out if each.code == "redirect_loop"] == [
        ("route-1", "redirect_loop")
    ]
    assert found.accepted.load_balancers[0].routes == (other,)
