"""Annotations of HAProxy's own controller (`haproxy.org/`): the frequent ones."""

from __future__ import annotations

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.context import networks_of
from apps.importing.kubernetes.ingress.annotations.routing import redirect_to
from apps.importing.kubernetes.ingress.settings import Annotations, Group, Settings
from apps.importing.kubernetes.objects.secrets import users

BALANCE = {"roundrobin": "roundrobin", "leastconn": "leastconn", "source": "source", "random": "random"}
TIMES = (("timeout-connect", "connect_timeout_ms"), ("timeout-server", "server_timeout_ms"),
         ("timeout-queue", "queue_timeout_ms"), ("timeout-tunnel", "tunnel_timeout_ms"))  # fmt: skip


def to_https(settings: Settings, said: Annotations) -> None:
    """`ssl-redirect`, which is on where TLS is configured."""
    flag = said.flag("ssl-redirect")
    settings.ssl_redirect = flag is not False
    settings.force_ssl = bool(flag)
    settings.ssl_code = said.number("ssl-redirect-code", 301, 308) or 302
    if settings.ssl_code not in (301, 302, 303, 307, 308):
        said.differs("ssl-redirect-code", "Redirects have 301, 302, 303, 307 or 308; this one has 302.")
        settings.ssl_code = 302
    settings.passthrough = bool(said.flag("ssl-passthrough"))
    said.mapped("ssl-redirect", "ssl-passthrough")


def redirects(settings: Settings, said: Annotations) -> None:
    """`request-redirect`: another host."""
    target, code = said.text("request-redirect"), said.text("request-redirect-code")
    if target is None:
        return
    found = redirect_to((target if "://" in target else f"http://{target}") + "$request_uri")
    if found is None:
        said.block(settings, "request-redirect", "Only a host, with or without a port, can be redirected to.")
        return
    if "://" not in target:
        del found["scheme"]
    found["code"] = int(code) if code in ("301", "302", "303", "307", "308") else 302
    settings.redirect = found
    said.mapped("request-redirect", "request-redirect-code")


def rewrites(settings: Settings, said: Annotations) -> None:
    """`path-rewrite`: a path for all paths; with a pattern it is not read."""
    text = said.text("path-rewrite")
    if text is None:
        return
    try:
        settings.rule("rewrite", path=grammar.path(text))
        said.mapped("path-rewrite")
    except GrammarError:
        said.block(settings, "path-rewrite", "Write the pattern as rewrite.path_regex of these routes.")


def protection(settings: Settings, said: Annotations) -> None:
    """Networks, passwords, and requests of one client."""
    for field, names in (("allow", ("whitelist", "allow-list")), ("deny", ("blacklist", "deny-list"))):
        name = said.first(*names)
        text = said.text(name)
        if text is None:
            continue
        try:
            called = f"{said.ingress.namespace}-{said.ingress.name}-{field}"
            settings.rule("access", **{field: [said.context.network_list(networks_of(text), called)]})
            said.mapped(name)
        except ValueError:
            said.block(settings, name, "This is no list of networks; patterns by name are files of the controller.")
    secret = said.ref("auth-secret")
    if said.text("auth-type") is not None:
        found = users(said.context, secret, as_map=True) if secret and said.text("auth-type") == "basic-auth" else None
        if found is None:
            said.block(settings, "auth-type", "Only basic-auth with a Secret of the file has a place (basic_auth).")
        else:
            settings.rule("basic_auth", users=found, keep_header=True)
            said.mapped("auth-type", "auth-secret")


def limits(settings: Settings, said: Annotations) -> None:
    """`rate-limit-requests` in `rate-limit-period`."""
    count = said.number("rate-limit-requests", 1, 1_000_000)
    period = said.milliseconds("rate-limit-period") or 1000
    if not count:
        return
    if period in (1000, 60_000):
        settings.rule("client_limit", requests=count, per="second" if period == 1000 else "minute")
        said.differs("rate-limit-requests", "Who asks for more gets 429; all nodes of a region count together.")
    else:
        said.impossible("rate-limit-period", "Requests are counted in a second or a minute.")


def headers(settings: Settings, said: Annotations) -> None:
    """`request-set-header`, `response-set-header` and `set-host`: a name and a value in each line."""
    for name, block, read in (("request-set-header", "request_headers", header_text.request_header),
                              ("response-set-header", "response_headers", header_text.response_header)):  # fmt: skip
        found = {}
        for line in (said.text(name) or "").splitlines():
            header, _, value = line.strip().partition(" ")
            value = value.strip().strip('"')
            try:
                if "%" in value:
                    raise GrammarError("format", "Formats of HAProxy are not read here.")
                found[read(header)] = header_text.header_text(value)
                said.mapped(name)
            except GrammarError as error:
                said.impossible(name, f"{header}: {error.message}")
        if found:
            settings.rule(block, set=found)
    host = said.text("set-host")
    if host is not None:
        try:
            settings.rule("rewrite", host=grammar.server_host(host.lower()))
            said.mapped("set-host")
        except GrammarError as error:
            said.block(settings, "set-host", error.message)


def servers(settings: Settings, said: Annotations) -> None:
    """Times, the algorithm, TLS and the cookie."""
    for name, field in TIMES:
        time = said.milliseconds(name, "ms")
        if time is not None:
            settings.pool[field] = time
    algorithm = (said.text("load-balance") or "").partition(" ")[0]
    if algorithm:
        settings.pool["balance"] = BALANCE.get(algorithm, "roundrobin")
        said.mapped("load-balance")
        if algorithm not in BALANCE:
            said.differs("load-balance", f"Servers are chosen in turn: there is no {algorithm}.")
    if said.flag("server-ssl"):
        settings.pool["server_tls"] = {"verify": "none"}
    said.mapped("server-ssl")
    if (said.text("server-proto") or "").lower() == "h2":
        settings.pool["http_version"] = "2"
    said.mapped("server-proto")
    cookie = said.text("cookie-persistence")
    if cookie is not None:
        settings.pool["persistence"] = {"by": "cookie", "cookie": cookie}
        said.differs("cookie-persistence", "The values of the cookie are new, so each client is given a server again.")


HAPROXY_GROUPS: tuple[Group, ...] = (to_https, redirects, rewrites, protection, limits, headers, servers)
