"""The shape of persistence: by what a client stays with its server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.servers import LONGEST_IDLE_S, cookie_name
from apps.compiler.model.servers import CookieMode, OnOverflow, PersistBy, SameSite
from apps.definitions.shapes.base.shape import About, Check, Data, Shape
from apps.definitions.shapes.base.words import Boolean, text, whole, word

BY = {
    PersistBy.COOKIE: "Cookie",
    PersistBy.HEADER: "Request header",
    PersistBy.SOURCE: "Client address",
}
MODES = {CookieMode.INSERT: "Set a cookie", CookieMode.PREFIX: "Prefix the servers' own cookie"}
SAME_SITE = {SameSite.LAX: "Lax", SameSite.STRICT: "Strict", SameSite.NONE: "None"}
ON_OVERFLOW = {
    OnOverflow.BREAKS: "Overflow moves clients to another server",
    OnOverflow.KEEPS: "Clients stay, also over the limit",
}


def _secure_enough(value: SameSite, data: Data) -> None:
    if value is SameSite.NONE and data.get("secure") is False:
        raise GrammarError("same_site", "Set secure as well: browsers drop a cookie of SameSite=None without it.")


def _in_a_cookie(value: OnOverflow, data: Data) -> None:
    if value is OnOverflow.KEEPS and data.get("by") in (PersistBy.HEADER, PersistBy.SOURCE):
        raise GrammarError(
            "overflow", "Only a cookie identifies the region of its server: set by to cookie, or overflow to breaks."
        )


@dataclass(frozen=True, slots=True)
class Persistence(Shape):
    """A client stays with its server, also across reloads and while the server is drained."""

    by: Annotated[
        PersistBy,
        word(PersistBy, BY),
        About("How a returning client is recognized.", "Clients recognized by", "", "cookie"),
    ] = PersistBy.COOKIE
    cookie: Annotated[
        str, text(cookie_name, "a name of a cookie", 64), About("The name of the cookie.", "Cookie name", "")
    ] = "SERVER"
    mode: Annotated[
        CookieMode,
        word(CookieMode, MODES),
        About("`insert` sets a cookie of the load balancer, `prefix` extends a cookie of the servers.", "Cookie", ""),
    ] = CookieMode.INSERT
    http_only: Annotated[Boolean, About("Scripts on pages cannot read the cookie.", "HttpOnly", "")] = True
    secure: Annotated[
        Boolean, About("Browsers send the cookie over https only: for pools behind https listeners.", "Secure", "")
    ] = False
    same_site: Annotated[
        SameSite,
        word(SameSite, SAME_SITE),
        Check(_secure_enough),
        About("With which requests from other sites browsers send the cookie.", "SameSite", ""),
    ] = SameSite.LAX
    header: Annotated[
        str,
        text(grammar.header_name, "a header name", 64, blank=True),
        About("The header that identifies a client; only its digest is stored.", "Header", ""),
    ] = ""
    idle_s: Annotated[
        int | None,
        whole(1, LONGEST_IDLE_S),
        About(
            "Seconds without a request after which a client is forgotten; null: with the browser's session, "
            "or after half an hour.",
            "Forget after",
            "s. Default: the browser's session, or half an hour.",
        ),
    ] = None
    overflow: Annotated[
        OnOverflow,
        word(OnOverflow, ON_OVERFLOW),
        Check(_in_a_cookie),
        About(
            "`breaks`: what is over a limit finds another server in the next region; `keeps`: a client with a cookie "
            "goes to the region of its server, whose limit does not send it away.",
            "When its region is full",
            "",
        ),
    ] = OnOverflow.BREAKS
