"""What Middlewares do before a route of Traefik passes requests on; one that is not read keeps its routes closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.compiler.grammars.servers import MOST_RETRIES
from apps.importing.kubernetes.context import Context, Ref, networks_of
from apps.importing.kubernetes.ingress.settings import Settings
from apps.importing.kubernetes.manifests.known import TRAEFIK
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.secrets import users
from apps.importing.values.fields import whole
from apps.importing.values.parsing import Path

CLOSED = "{} Its routes answer 503 until you say it in another way."
# What no route needs to be served as it was.
BESIDE: Mapping[str, str] = {
    "compress": "Compression is a setting of the listener.",
    "errors": "Pages for errors are text: write them in error_pages of a policy (with intercept).",
    "circuitBreaker": "Servers that fail are left out by health checks and outlier_ejection of the pool.",
    "contentType": "The Content-Type of servers is passed on as it is.",
    "grpcWeb": "gRPC-Web is not translated; let a proxy behind do it.",
}
HSTS = ("stsSeconds", "stsIncludeSubdomains", "stsPreload", "forceSTSHeader")
# Fields of `headers` that are one header of responses.
SAID = {
    "customFrameOptionsValue": "X-Frame-Options", "contentSecurityPolicy": "Content-Security-Policy",
    "referrerPolicy": "Referrer-Policy", "permissionsPolicy": "Permissions-Policy",
    "customBrowserXSSValue": "X-XSS-Protection",
}  # fmt: skip
FLAGS = {
    "frameDeny": ("X-Frame-Options", "DENY"), "contentTypeNosniff": ("X-Content-Type-Options", "nosniff"),
    "browserXssFilter": ("X-XSS-Protection", "1; mode=block"),
}  # fmt: skip


@dataclass(slots=True)
class Steps:
    """What is done to a request: settings of its routes, and what becomes of its path."""

    context: Context
    settings: Settings
    strip: list[str] = field(default_factory=list)
    add: str = ""
    replace: str = ""

    @property
    def moves(self) -> bool:
        """Whether servers get another path."""
        return bool(self.strip or self.add or self.replace)

    def close(self, middleware: Manifest, at: Path, why: str) -> None:
        """Nobody is served without it."""
        self.settings.blocked = why
        middleware.impossible(at, CLOSED.format(why))


def steps_of(context: Context, route: Manifest, at: Path, settings: Settings) -> Steps:
    """All middlewares of a route, in their order."""
    steps = Steps(context, settings)
    for path, said in route.each(*at, "middlewares"):
        ref = (str(said.get("namespace") or route.namespace), str(said.get("name")).partition("@")[0])
        if _take(steps, ref, chained=False):
            route.mapped(path)
        else:
            settings.blocked = f"The Middleware {'/'.join(ref)} is not in the file."
            route.differs(path, f"{settings.blocked} Its routes answer 503 until you add its manifest.")
            context.need(f"The Middleware {'/'.join(ref)}; add it to the YAML.")
    return steps


def take_named(steps: Steps, name: str) -> bool:
    """Read the Middleware that Ingresses call so, by namespace and name with a hyphen; whether it is in the file."""
    found = (each for each in steps.context.of_kind("Middleware") if f"{each.namespace}-{each.name}" == name)
    middleware = next(found, None)
    return middleware is not None and _take(steps, (middleware.namespace, middleware.name), chained=False)


def _take(steps: Steps, ref: Ref, *, chained: bool) -> bool:
    """Read one; whether it is in the file."""
    middleware = steps.context.find("Middleware", ref)
    if middleware is None or middleware.group not in TRAEFIK:
        return False
    middleware.mapped(("kind",))
    spec = middleware.at("spec")
    for kind in spec if isinstance(spec, Mapping) else ():
        at = ("spec", str(kind))
        if kind == "chain" and not chained:
            for path, said in middleware.each(*at, "middlewares"):
                inner = (str(said.get("namespace") or middleware.namespace), str(said.get("name")))
                middleware.mapped(path)
                if not _take(steps, inner, chained=True):
                    steps.close(middleware, path, f"The Middleware {'/'.join(inner)} is not in the file.")
        elif kind in BESIDE:
            middleware.impossible(at, BESIDE[str(kind)])
        elif kind in READERS:
            READERS[str(kind)](steps, middleware, at)
        else:
            steps.close(middleware, at, f"Middlewares of the kind {kind} are not read.")
    return True


def _strip(steps: Steps, middleware: Manifest, at: Path) -> None:
    steps.strip += [text.rstrip("/") for _, text in middleware.texts(*at, "prefixes")]
    middleware.mapped(at)


def _path(steps: Steps, middleware: Manifest, at: Path, name: str) -> str | None:
    """The path in a field; None where it is none, which closes the routes."""
    try:
        found = grammar.path(str(middleware.at(*at, name)))
    except GrammarError as error:
        steps.close(middleware, at, error.message)
        return None
    middleware.mapped(at)
    return found


def _add(steps: Steps, middleware: Manifest, at: Path) -> None:
    steps.add = _path(steps, middleware, at, "prefix") or steps.add


def _replace(steps: Steps, middleware: Manifest, at: Path) -> None:
    steps.replace = _path(steps, middleware, at, "path") or steps.replace


def _to_scheme(steps: Steps, middleware: Manifest, at: Path) -> None:
    if middleware.at(*at, "scheme") != "https" or str(middleware.at(*at, "port") or "443") != "443":
        steps.close(middleware, at, "Redirects lead to https at port 443 here.")
        return
    code, settings = 301 if middleware.at(*at, "permanent") else 302, steps.settings
    if settings.scheme == "http":
        settings.redirect = {"code": code, "scheme": "https"}
    elif not settings.scheme:  # what comes over https is served
        settings.force_ssl, settings.ssl_code = True, code
    middleware.mapped(at)


def _basic(steps: Steps, middleware: Manifest, at: Path) -> None:
    found = users(steps.context, (middleware.namespace, str(middleware.at(*at, "secret"))), as_map=False, key="users")
    if found is None:
        steps.settings.blocked = "The users of its Secret are not in the file."
        middleware.differs(at, "Its routes answer 503 until you add the manifest of its Secret.")
        return
    kept = not middleware.at(*at, "removeHeader")
    steps.settings.rule("basic_auth", users=found, **({"keep_header": True} if kept else {}))
    middleware.mapped(at)
    if (realm := middleware.at(*at, "realm")) is not None:
        try:
            steps.settings.rule("basic_auth", realm=authentication.realm(str(realm)))
        except GrammarError as error:
            middleware.differs((*at, "realm"), f"{error.message} The usual realm is shown.")


def _networks(steps: Steps, middleware: Manifest, at: Path) -> None:
    try:
        found = networks_of(",".join(text for _, text in middleware.texts(*at, "sourceRange")))
    except ValueError:
        steps.close(middleware, at, "This is no list of networks.")
        return
    name = steps.context.network_list(found, f"{middleware.namespace}-{middleware.name}")
    steps.settings.rule("access", allow=[name])
    middleware.mapped(at)


def _rate(steps: Steps, middleware: Manifest, at: Path) -> None:
    average, period = middleware.at(*at, "average"), str(middleware.at(*at, "period") or "1s")
    if whole(average, 0) == 0 or period not in ("1s", "1", "1m", "60s"):
        middleware.impossible(at, "Clients are limited by a number of requests per second or minute (client_limit).")
        return
    block: dict[str, Any] = {"requests": average, "per": "second" if period in ("1s", "1") else "minute"}
    if block["per"] == "second":
        block["burst"] = max(whole(middleware.at(*at, "burst"), 1), average)
    steps.settings.rule("client_limit", **block)
    middleware.differs(at, "Beyond it clients get 429, counted in the whole region; a burst is of one second.")


def _in_flight(steps: Steps, middleware: Manifest, at: Path) -> None:
    steps.settings.rule("client_limit", in_flight=whole(middleware.at(*at, "amount"), 1))
    middleware.mapped(at)


def _body(steps: Steps, middleware: Manifest, at: Path) -> None:
    if most := whole(middleware.at(*at, "maxRequestBodyBytes"), 0):
        steps.settings.rule("body", max_bytes=most)
    middleware.node_setting(at, "Spillway streams bodies; how they are buffered is a setting of nodes.")
    middleware.mapped((*at, "maxRequestBodyBytes"))


def _retry(steps: Steps, middleware: Manifest, at: Path) -> None:
    attempts = whole(middleware.at(*at, "attempts"), 1)
    steps.settings.pool["retries"] = {"attempts": min(attempts - 1, MOST_RETRIES), "on": ["connect", "no_answer"]}
    middleware.mapped((*at, "attempts"))
    middleware.node_setting((*at, "initialInterval"), "A retry goes to another server at once.")


def _headers(steps: Steps, middleware: Manifest, at: Path) -> None:
    fields = middleware.at(*at)
    for name, value in fields.items() if isinstance(fields, Mapping) else ():
        path = (*at, str(name))
        if name in ("customRequestHeaders", "customResponseHeaders") and isinstance(value, Mapping):
            _custom(steps, middleware, path, value)
        elif name in SAID:
            _set(steps, middleware, path, "response_headers", SAID[str(name)], str(value))
        elif name in FLAGS and value is True:
            _set(steps, middleware, path, "response_headers", *FLAGS[str(name)])
        elif name in HSTS:
            _hsts(steps, middleware, path, fields)
        elif value is False:
            middleware.mapped(path)
        else:
            middleware.impossible(path, "Write it in response_headers, security_headers or cors of a policy.")


def _custom(steps: Steps, middleware: Manifest, at: Path, pairs: Mapping[str, Any]) -> None:
    block = "request_headers" if at[-1] == "customRequestHeaders" else "response_headers"
    for name, value in pairs.items():
        _set(steps, middleware, (*at, str(name)), block, str(name), str(value or ""))


def _set(steps: Steps, middleware: Manifest, at: Path, block: str, name: str, value: str) -> None:
    read = header_text.request_header if block == "request_headers" else header_text.response_header
    try:
        read(name)
        if header_text.begins_variable(value):
            raise GrammarError("variable", "Braces before letters have no place: they are variables here.")
        text = header_text.header_text(value) if value else ""
    except GrammarError as error:
        middleware.impossible(at, error.message)
        return
    before = steps.settings.rules.get(block, {})
    change = {"set": {**before.get("set", {}), name: text}} if text else {"remove": [*before.get("remove", ()), name]}
    steps.settings.rule(block, **change)
    middleware.mapped(at)


def _hsts(steps: Steps, middleware: Manifest, at: Path, fields: Mapping[str, Any]) -> None:
    if seconds := whole(fields.get("stsSeconds"), 0):
        below = bool(fields.get("stsIncludeSubdomains"))
        steps.settings.rule("security_headers", hsts_seconds=seconds, hsts_subdomains=below)
    middleware.mapped(at)
    if at[-1] == "stsPreload":
        middleware.differs(at, "The header does not say preload.")


READERS: dict[str, Callable[[Steps, Manifest, Path], None]] = {
    "stripPrefix": _strip, "addPrefix": _add, "replacePath": _replace, "redirectScheme": _to_scheme,
    "basicAuth": _basic, "ipAllowList": _networks, "ipWhiteList": _networks, "rateLimit": _rate,
    "inFlightReq": _in_flight, "buffering": _body, "retry": _retry, "headers": _headers,
}  # fmt: skip
