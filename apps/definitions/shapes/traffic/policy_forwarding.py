"""The shapes of a policy's blocks that decide how requests are sent on: times, repetition, the sides of a split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.grammars import cookies
from apps.compiler.grammars.servers import cookie_name
from apps.compiler.model import policy as model
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import About, Data, Grammar, Shape
from apps.definitions.shapes.base.words import Boolean, TimeMs, text, whole

STICK_BY = {"cookie": "Cookie", "address": "Client address", "header": "Request header"}
SAME_SITE = {"lax": "Lax", "strict": "Strict", "none": "None"}
YEAR_S = 31_536_000


@dataclass(frozen=True, slots=True)
class Timeouts(model.Timeouts, Shape):
    """Times of some routes instead of those of their pools."""

    sparse: ClassVar = True

    response_ms: Annotated[
        TimeMs | None,
        About("How long a server may take until it answers, in ms; then 504.", "Response, ms", example=5000),
    ] = None
    tunnel_ms: Annotated[
        TimeMs | None,
        About("How long an upgraded connection (WebSocket) may be silent, in ms.", "Upgraded connections, ms"),
    ] = None


@dataclass(frozen=True, slots=True)
class Retries(model.Retries, Shape):
    """Which requests are sent once more. Connections that fail are always tried again: no server got anything."""

    component: ClassVar[str] = "RequestRetries"
    sparse: ClassVar = True

    after_sending: Annotated[
        Boolean | None,
        About(
            "Whether a request is repeated when a server closed the connection without an answer; never POST or PATCH.",
            "Repeat what was sent",
            example=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Split(model.Split, Shape):
    """Clients stay on their side of a route with several pools, also while its weights change."""

    sparse: ClassVar = True

    stick_by: Annotated[
        Annotated[str, Grammar(cookies.stick_by, {"type": "string", "enum": list(STICK_BY)}, labels=STICK_BY)] | None,
        About("By what a client is known again.", "Clients stay by", example="cookie"),
    ] = None
    header: Annotated[
        Annotated[str, text(grammar.header_name, "the name of a header", 64, r"^[A-Za-z][A-Za-z0-9-]*$")] | None,
        About("The request header by whose value clients are known.", "Header"),
    ] = None
    cookie: Annotated[
        Annotated[str, text(cookie_name, "the name of a cookie", 64, r"^[A-Za-z][A-Za-z0-9_-]*$")] | None,
        About("The name of the cookie; spillway-side where nothing is said.", "Cookie"),
    ] = None
    max_age_s: Annotated[
        Annotated[int, whole(1, YEAR_S)] | None,
        About("How long browsers keep the cookie, in seconds; until they close where nothing is said.", "Max age, s"),
    ] = None
    secure: Annotated[Boolean | None, About("Whether the cookie is sent over https only.", "Secure")] = None
    http_only: Annotated[
        Boolean | None, About("Whether scripts do not see the cookie; yes where nothing is said.", "HttpOnly")
    ] = None
    same_site: Annotated[
        Annotated[str, Grammar(cookies.same_site, {"type": "string", "enum": list(SAME_SITE)}, labels=SAME_SITE)]
        | None,
        About("Whether other sites' requests carry the cookie; lax where nothing is said.", "SameSite"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """By a header needs its name."""
        if sent.get("stick_by") == "header" and not sent.get("header"):
            yield FieldError("/header", "missing", "Name the header by whose value clients are known.")
        if sent.get("same_site") == "none" and sent.get("secure") is not True:
            yield FieldError("/secure", "cookie", "Set secure: browsers drop cookies of SameSite=None without it.")
