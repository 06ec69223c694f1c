"""ingress-nginx: who may ask, and how much: networks, passwords, client certificates, limits."""

from __future__ import annotations

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.importing.kubernetes.context import networks_of
from apps.importing.kubernetes.ingress.settings import Annotations, Settings
from apps.importing.kubernetes.objects.secrets import authorities, users

MODES = {"on": "required", "optional": "optional"}
AT_429 = "Who asks for more gets 429, not 503, and is counted over all nodes of a region together."


def networks(settings: Settings, said: Annotations) -> None:
    """Networks that are let in, and others that are kept out."""
    allowed = said.first("whitelist-source-range", "allowlist-source-range")
    for name, field in ((allowed, "allow"), ("denylist-source-range", "deny")):
        text = said.text(name)
        if text is None:
            continue
        try:
            found = networks_of(text)
        except ValueError:
            said.block(settings, name, "This is no list of networks.")
            continue
        called = said.context.network_list(found, f"{said.ingress.namespace}-{said.ingress.name}-{field}")
        settings.rule("access", **{field: [called]})
        said.mapped(name)


def passwords(settings: Settings, said: Annotations) -> None:
    """`auth-type: basic` with the users of a Secret."""
    kind = said.text("auth-type")
    names = ("auth-secret", "auth-secret-type", "auth-realm")
    if kind is None:
        for name in names:
            said.dead(name, "Without auth-type nobody is asked for a password.")
        return
    secret = said.ref("auth-secret")
    if kind != "basic" or secret is None:
        said.block(settings, "auth-type", "Only auth-type basic with an auth-secret has a place (basic_auth).")
        return
    found = users(said.context, secret, as_map=said.text("auth-secret-type") == "auth-map")
    if found is None:
        said.wait(settings, "auth-secret", "The users of this Secret are not in the file.")
        said.mapped("auth-type", "auth-secret-type", "auth-realm")
        return
    settings.rule("basic_auth", users=found)
    said.mapped("auth-type", *names)
    realm = said.text("auth-realm")
    if realm is not None:
        try:
            settings.rule("basic_auth", realm=authentication.realm(realm))
        except GrammarError as error:
            said.differs("auth-realm", f"{error.message} The usual realm is shown.")
    settings.rule("basic_auth", keep_header=True)  # nginx passes it on


def client_certificates(settings: Settings, said: Annotations) -> None:
    """`auth-tls-secret`: what clients present."""
    secret = said.ref("auth-tls-secret")
    verify = said.text("auth-tls-verify-client") or "on"
    if secret is None:
        for name in ("auth-tls-verify-client", "auth-tls-verify-depth", "auth-tls-pass-certificate-to-upstream"):
            said.dead(name, "There is no auth-tls-secret.")
        return
    if verify == "off":
        said.mapped("auth-tls-secret", "auth-tls-verify-client")
        return
    if verify not in MODES:
        said.block(settings, "auth-tls-verify-client", "Certificates are required or optional, and always verified.")
        return
    said.mapped("auth-tls-verify-client")
    if said.text("auth-tls-verify-depth"):
        said.differs("auth-tls-verify-depth", "Chains may be as long as the authorities allow.")
    passed = "auth-tls-pass-certificate-to-upstream"
    if said.flag(passed):
        why = "Servers get the subject, issuer, serial number and digest of the certificate in headers of Spillway."
        said.impossible(passed, why)
    said.mapped(passed)
    ca = authorities(said.context, secret, ("Secret",))
    if not ca:
        said.wait(settings, "auth-tls-secret", "The Secret with ca.crt is not in the file.")
        return
    settings.client_certificates = {"mode": MODES[verify], "ca": ca}
    said.mapped("auth-tls-secret")


def limits(settings: Settings, said: Annotations) -> None:
    """Requests and connections of one client."""
    per_second = said.number("limit-rps", 1, 1_000_000)
    per_minute = said.number("limit-rpm", 1, 1_000_000)
    multiplier = said.number("limit-burst-multiplier", 1, 1000) or 5
    at_once = said.number("limit-connections", 1, 100_000)
    if per_second:
        burst = min(per_second * multiplier, 1_000_000)
        settings.rule("client_limit", requests=per_second, per="second", burst=max(burst, per_second))
        said.differs("limit-rps", AT_429)
        if per_minute:
            said.impossible("limit-rpm", "A route has one rate; limit-rps is used.")
    elif per_minute:
        settings.rule("client_limit", requests=per_minute, per="minute")
        said.differs("limit-rpm", AT_429)
    if at_once:
        settings.rule("client_limit", in_flight=at_once)
        said.differs("limit-connections", "Requests at once are counted, not connections. " + AT_429)
    if "client_limit" in settings.rules:
        settings.rule("client_limit", counted_for="hostname")
    _exempt(settings, said)


def _exempt(settings: Settings, said: Annotations) -> None:
    name = said.first("limit-whitelist", "limit-allowlist")
    text = said.text(name)
    if text is None:
        return
    try:
        settings.rule("client_limit", exempt=list(networks_of(text)))
        said.mapped(name)
    except ValueError:
        said.impossible(name, "This is no list of networks.")
    if settings.rules.get("client_limit", {}).keys() <= {"exempt"}:
        settings.rules.pop("client_limit", None)
        said.dead(name, "There is no limit.")
