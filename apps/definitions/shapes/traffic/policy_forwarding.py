"""The shapes of a policy's blocks that decide how requests are sent on: speed, times, repetition, sides of a split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.grammars import cookies
from apps.compiler.grammars.servers import MOST_RETRIES, cookie_name
from apps.compiler.model import policy as model
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import About, Data, Distinct, Grammar, Shape
from apps.definitions.shapes.base.words import Boolean, ByName, TimeMs, at_most, one_of, text, whole

STICK_BY = {"cookie": "Cookie", "address": "Client address", "header": "Request header"}
SAME_SITE = {"lax": "Lax", "strict": "Strict", "none": "None"}
OVERFLOW = {"anywhere": "Wherever the pool's may go", "listed": "The regions listed below", "never": "Nowhere"}
MOST_REGIONS = 50
PER = {"client": "Each client", "request": "Each request"}
YEAR_S = 31_536_000


@dataclass(frozen=True, slots=True)
class Timeouts(model.Timeouts, Shape):
    """Timeouts of some routes instead of those of their pools."""

    sparse: ClassVar = True

    response_ms: Annotated[
        TimeMs | None,
        About(
            "How long a server may take to respond, in ms; after that, clients get 504.", "Response, ms", example=5000
        ),
    ] = None
    tunnel_ms: Annotated[
        TimeMs | None,
        About("How long an upgraded connection (WebSocket) may be idle, in ms.", "Upgraded connections, ms"),
    ] = None


@dataclass(frozen=True, slots=True)
class Bandwidth(model.Bandwidth, Shape):
    """How fast bodies are transferred, at most. Each node of the fleets needs HAProxy 2.7 or later."""

    sparse: ClassVar = True

    download_bytes_per_s: Annotated[
        Annotated[int, whole(*grammar.BANDWIDTH)] | None,
        About("Bytes of response bodies per second.", "Download, bytes per second", example=1_000_000),
    ] = None
    upload_bytes_per_s: Annotated[
        Annotated[int, whole(*grammar.BANDWIDTH)] | None,
        About("Bytes of request bodies per second.", "Upload, bytes per second"),
    ] = None
    per: Annotated[
        Annotated[str, one_of(labels=PER)] | None,
        About(
            "Whether all requests of a client address on a route share this, counted by each node, or each request "
            "has it. Default: client.",
            "For",
        ),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """A limit without a number may come from a nearer policy; `per` alone says nothing."""
        if sent.get("per") and not (sent.get("download_bytes_per_s") or sent.get("upload_bytes_per_s")):
            yield FieldError("/per", "missing", "Add download_bytes_per_s or upload_bytes_per_s.")


@dataclass(frozen=True, slots=True)
class Retries(model.Retries, Shape):
    """Which requests are retried. Failed connections are always retried, because no server got the request."""

    component: ClassVar[str] = "RequestRetries"
    sparse: ClassVar = True

    after_sending: Annotated[
        Boolean | None,
        About(
            "Whether a request is retried if a server closes the connection without a response; never POST or PATCH.",
            "Retry sent requests",
            example=False,
        ),
    ] = None
    attempts: Annotated[
        Annotated[int, whole(0, MOST_RETRIES)] | None,
        About(
            "The number of retries after the first attempt, instead of the pool's; needs HAProxy 3.2 or later.",
            "Retries",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class RequestOverflow(model.Overflow, Shape):
    """Where requests go that their region has no room for, within what the pool allows."""

    sparse: ClassVar = True

    mode: Annotated[
        Annotated[str, one_of(labels=OVERFLOW)] | None,
        About(
            "`anywhere`: wherever the pool's overflow may go; `listed`: only to those regions of `order`; `never`: "
            "requests stay in their region.",
            "Overflow to",
            example="listed",
        ),
    ] = None
    order: Annotated[
        tuple[ByName, ...] | None,
        at_most(MOST_REGIONS, "regions"),
        Distinct(),
        About("The regions to try first.", "Overflow order", example="europe-west1"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """As a pool says it."""
        if sent.get("mode") == "listed" and not sent.get("order"):
            yield FieldError("/order", "missing", "Name the regions that overflow may go to, or choose mode never.")
        if sent.get("mode") == "never" and sent.get("order"):
            yield FieldError("/order", "mode", "Overflow goes nowhere in mode never; leave the order out.")


@dataclass(frozen=True, slots=True)
class Split(model.Split, Shape):
    """Clients stay on their side of a route with several pools, also while its weights change."""

    sparse: ClassVar = True

    stick_by: Annotated[
        Annotated[str, Grammar(cookies.stick_by, {"type": "string", "enum": list(STICK_BY)}, labels=STICK_BY)] | None,
        About("How a returning client is recognized.", "Clients recognized by", example="cookie"),
    ] = None
    header: Annotated[
        Annotated[str, text(grammar.header_name, "the name of a header", 64, r"^[A-Za-z][A-Za-z0-9-]*$")] | None,
        About("The request header that identifies a client.", "Header"),
    ] = None
    cookie: Annotated[
        Annotated[str, text(cookie_name, "the name of a cookie", 64, r"^[A-Za-z][A-Za-z0-9_-]*$")] | None,
        About("The name of the cookie. Default: spillway-side.", "Cookie"),
    ] = None
    max_age_s: Annotated[
        Annotated[int, whole(1, YEAR_S)] | None,
        About("How long browsers keep the cookie, in seconds. Default: until they close.", "Max age, s"),
    ] = None
    secure: Annotated[Boolean | None, About("Whether the cookie is sent over https only.", "Secure")] = None
    http_only: Annotated[Boolean | None, About("Whether scripts cannot read the cookie. Default: yes.", "HttpOnly")] = (
        None
    )
    same_site: Annotated[
        Annotated[str, Grammar(cookies.same_site, {"type": "string", "enum": list(SAME_SITE)}, labels=SAME_SITE)]
        | None,
        About("Whether requests from other sites carry the cookie. Default: lax.", "SameSite"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """By a header needs its name."""
        if sent.get("stick_by") == "header" and not sent.get("header"):
            yield FieldError("/header", "missing", "Name the header that identifies a client.")
        if sent.get("same_site") == "none" and sent.get("secure") is not True:
            yield FieldError("/secure", "cookie", "Set secure: browsers drop cookies of SameSite=None without it.")
