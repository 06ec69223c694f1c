"""ingress-nginx: the way to servers: times, retries, protocol, TLS, which server, which host they see."""

from __future__ import annotations

import re

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.compiler.grammars.servers import MOST_RETRIES, cookie_name
from apps.importing.kubernetes.ingress.settings import LONGEST_MS, Annotations, Settings
from apps.importing.kubernetes.objects.secrets import authorities, certificate

# What the controller does where nothing is said.
CONNECT_MS, READ_MS = 5_000, 60_000
LONGEST_IDLE_S = 31 * 86_400
ERRORS = {"error": ("connect", "no_answer"), "timeout": ("timeout",), "invalid_header": ("junk",), "http_500": ("500",),
          "http_502": ("502",), "http_503": ("503",), "http_504": ("504",), "http_404": ("404",)}  # fmt: skip
PROTOCOLS = {"HTTP": (False, False), "HTTPS": (True, False), "GRPC": (False, True), "GRPCS": (True, True)}


def times(settings: Settings, said: Annotations) -> None:
    """`proxy-*-timeout`, in seconds."""
    settings.pool["connect_timeout_ms"] = said.milliseconds("proxy-connect-timeout") or CONNECT_MS
    read, send = said.milliseconds("proxy-read-timeout"), said.milliseconds("proxy-send-timeout")
    settings.pool["server_timeout_ms"] = read or READ_MS
    if send is not None and send != (read or READ_MS):
        said.differs("proxy-send-timeout", "Sending and reading have one timeout, that of proxy-read-timeout.")
    if read is not None and read > READ_MS:
        settings.pool["tunnel_timeout_ms"] = min(read, LONGEST_MS)


def retries(settings: Settings, said: Annotations) -> None:
    """`proxy-next-upstream` and its tries."""
    text, tries = said.text("proxy-next-upstream"), said.number("proxy-next-upstream-tries", 0, 11)
    if said.text("proxy-next-upstream-timeout") is not None:
        said.impossible("proxy-next-upstream-timeout", "Retries are bounded by their number and by a budget.")
    if text is None and tries is None:
        return
    found: dict[str, object] = {}
    words = (text or "error timeout").split()
    if words == ["off"]:
        found["attempts"] = 0
    else:
        found["on"] = list(dict.fromkeys(each for word in words for each in ERRORS.get(word, ())))
        found["attempts"] = MOST_RETRIES if tries == 0 else (tries or 3) - 1
    if not found.get("on", True):
        found = {"attempts": 0}
    said.mapped("proxy-next-upstream")
    for word in words:
        if word not in ERRORS and word != "off":
            said.differs("proxy-next-upstream", f"There is no retry after {word}; POST and PATCH are never repeated.")
    settings.pool["retries"] = found


def protocol(settings: Settings, said: Annotations) -> None:
    """`backend-protocol` and `proxy-ssl-*`."""
    name = (said.text("backend-protocol") or "HTTP").upper()
    if name not in PROTOCOLS:
        said.block(settings, "backend-protocol", f"Servers are not spoken to by {name} here.")
        return
    encrypted, by_http2 = PROTOCOLS[name]
    said.mapped("backend-protocol")
    if by_http2:
        settings.pool["http_version"] = "2"
    names = ("proxy-ssl-verify", "proxy-ssl-name", "proxy-ssl-secret", "proxy-ssl-server-name")
    if not encrypted:
        for each in names:
            said.dead(each, "Servers are spoken to without TLS.")
        return
    settings.pool["server_tls"] = _server_tls(said)


def _server_tls(said: Annotations) -> dict[str, str]:
    """nginx verifies nothing unless it is told to."""
    found = {"verify": "none"}
    secret = said.ref("proxy-ssl-secret")
    said.mapped("proxy-ssl-verify")
    if said.flag("proxy-ssl-verify") and secret is not None:
        ca = authorities(said.context, secret, ("Secret",))
        found = {"verify": "ca", "ca": ca} if ca else {"verify": "system"}
    elif said.flag("proxy-ssl-verify"):
        found["verify"] = "system"
    if secret is not None:
        said.mapped("proxy-ssl-secret")
        manifest = said.context.find("Secret", secret)
        if manifest is not None and (manifest.at("data", "tls.crt") or manifest.at("stringData", "tls.crt")):
            found["client_certificate"] = certificate(said.context, secret)
    if (name := said.text("proxy-ssl-name")) is not None:
        try:
            found["server_name"] = grammar.server_host(name)
            said.mapped("proxy-ssl-name")
        except GrammarError as error:
            said.impossible("proxy-ssl-name", error.message)
    if said.text("proxy-ssl-server-name") is not None:
        said.differs("proxy-ssl-server-name", "Servers are always told a name (SNI).")
    return found


def affinity(settings: Settings, said: Annotations) -> None:
    """`affinity: cookie` and `session-cookie-*`."""
    names = [name.removeprefix(said.prefix) for name in said.ingress.annotations() if "/session-cookie-" in name]
    if said.text("affinity") is None:
        for name in names:
            said.dead(name, "Without affinity there is no cookie.")
        return
    if said.text("affinity") != "cookie":
        said.impossible("affinity", "Clients are known again by a cookie, a header or their address (persistence).")
        return
    found: dict[str, object] = {"by": "cookie", "cookie": "INGRESSCOOKIE", "http_only": True}
    said.differs("affinity", "The values of the cookie are new, so each client is given a server once more.")
    called = said.text("session-cookie-name")
    if called is not None:
        try:
            found["cookie"] = cookie_name(called)
            said.mapped("session-cookie-name")
        except GrammarError as error:
            said.differs("session-cookie-name", f"{error.message} The cookie is INGRESSCOOKIE.")
    _attributes(found, said)
    settings.pool["persistence"] = found


def _attributes(found: dict[str, object], said: Annotations) -> None:
    if said.flag("session-cookie-secure"):
        found["secure"] = True
    said.mapped("session-cookie-secure")
    same_site = (said.text("session-cookie-samesite") or "").lower()
    if same_site in ("lax", "strict", "none"):
        found["same_site"] = same_site
        found |= {"secure": True} if same_site == "none" else {}
        said.mapped("session-cookie-samesite")
    age = said.number("session-cookie-max-age", 1, LONGEST_IDLE_S)
    if age:
        found["idle_s"] = age
        said.differs("session-cookie-max-age", "A client is forgotten after this time without a request.")
    for name in ("session-cookie-expires", "session-cookie-path", "session-cookie-domain",
                 "session-cookie-conditional-samesite-none", "session-cookie-change-on-failure"):  # fmt: skip
        if said.text(name) is not None:
            said.differs(name, "The cookie holds for the whole host; another server takes over where one fails.")
    mode = said.text("affinity-mode")
    if mode is not None:
        said.mapped("affinity-mode") if mode == "persistent" else said.differs(
            "affinity-mode", "Clients stay with their server, also when servers are added."
        )


def balance(settings: Settings, said: Annotations) -> None:
    """`load-balance` and `upstream-hash-by`."""
    algorithm = said.text("load-balance")
    if algorithm is not None and algorithm.lower() in ("round_robin", "round-robin"):
        said.mapped("load-balance")
    elif algorithm is not None:
        settings.pool["balance"] = "leastconn"
        said.differs("load-balance", "The server with the fewest connections is chosen (leastconn).")
    key = said.text("upstream-hash-by")
    if key is None:
        return
    header = re.fullmatch(r"\$(?:\{)?http_([a-z0-9_]+)\}?", key)
    if key.strip("${}") in ("remote_addr", "binary_remote_addr"):
        settings.pool["balance"] = "source"
        said.mapped("upstream-hash-by")
    elif header:
        settings.pool["persistence"] = {"by": "header", "header": header[1].replace("_", "-").title()}
        said.differs("upstream-hash-by", "Equal values stay with one server (persistence); which one is chosen anew.")
    else:
        said.differs("upstream-hash-by", "Servers are chosen in turn: there is no hash of this.")


def prefix(settings: Settings, said: Annotations) -> None:
    """`x-forwarded-prefix`: set where paths are rewritten."""
    text = said.text("x-forwarded-prefix")
    if text is None:
        return
    if not settings.rewrite:
        said.differs("x-forwarded-prefix", "ingress-nginx sets the header only where rewrite-target is.")
    elif "$" in text:
        said.impossible("x-forwarded-prefix", "The header has one text for all paths of a rule.")
    else:
        settings.rule("request_headers", set={"X-Forwarded-Prefix": text})
        said.mapped("x-forwarded-prefix")


def redirects(settings: Settings, said: Annotations) -> None:
    """`proxy-redirect-from` and `proxy-redirect-to`; `off` and `default` leave Location as it is."""
    names = ("proxy-redirect-from", "proxy-redirect-to")
    found = [said.text(name) for name in names]
    for name, text in zip(names, found, strict=True):
        if text is not None:
            said.mapped(name)
    if found[0] == "default":
        said.differs(names[0], "Redirects of servers are passed on as they are.")
    if not found[0] or not found[1] or found[0] in ("off", "default"):
        return
    try:
        prefix, text = map(rewriting.location, found)
        settings.rule("response_rewrite", location_prefix=prefix, location_replacement=text)
    except GrammarError as error:
        said.impossible(names[0], error.message)


def host(settings: Settings, said: Annotations) -> None:
    """`upstream-vhost`: the Host header that servers get."""
    name = said.text("upstream-vhost")
    if name is None:
        return
    try:
        settings.rule("rewrite", host=grammar.server_host(name.lower()))
        said.mapped("upstream-vhost")
    except GrammarError as error:
        said.block(settings, "upstream-vhost", error.message)
