"""Which controller reads an Ingress, and its annotations as settings."""

from __future__ import annotations

from collections.abc import Iterable

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.ingress.annotations import answers, protection, routing, servers, snippets
from apps.importing.kubernetes.ingress.annotations.haproxy import HAPROXY_GROUPS
from apps.importing.kubernetes.ingress.annotations.traefik import TRAEFIK_GROUPS
from apps.importing.kubernetes.ingress.annotations.unmapped import (
    CLOSES,
    HAPROXY,
    NGINX,
    NOT_OF_NGINX,
    OF_OTHERS,
    PROTECTS,
    TRAEFIK,
    is_known,
)
from apps.importing.kubernetes.ingress.settings import Annotations, Group, Settings
from apps.importing.kubernetes.manifests.manifest import ANNOTATIONS, Manifest

CLASS = "kubernetes.io/ingress.class"
NGINX_GROUPS: tuple[Group, ...] = (
    routing.rewrites, routing.to_https, routing.redirects, routing.roots, routing.hosts, routing.canaries,
    protection.networks, protection.passwords, protection.client_certificates, protection.limits,
    servers.times, servers.retries, servers.protocol, servers.affinity, servers.balance, servers.host,
    servers.prefix, servers.redirects, answers.cors, answers.bodies, answers.logs, snippets.headers,
)  # fmt: skip
# Of a canary only these count; the rest is that of the Ingress that it belongs to.
CANARY_GROUPS: tuple[Group, ...] = (routing.canaries, servers.affinity, servers.balance)
CONTROLLERS: dict[str, tuple[str, tuple[Group, ...]]] = {
    "nginx": (NGINX, NGINX_GROUPS),
    "haproxy": (HAPROXY, HAPROXY_GROUPS),
    "traefik": (TRAEFIK, TRAEFIK_GROUPS),
}


def class_of(ingress: Manifest) -> str:
    """The class that an Ingress names, empty where it names none."""
    return str(ingress.at("spec", "ingressClassName") or ingress.annotations().get(CLASS, ""))


def controller_of(context: Context, ingress: Manifest) -> str:
    """By the class, what the class says of its controller, or the annotations; else ingress-nginx."""
    name = class_of(ingress)
    found = next((each for each in context.of_kind("IngressClass") if each.name == name), None)
    if found is not None:
        found.mapped(("kind",))
        found.mapped(("spec", "controller"))
    said = f"{name} {found.at('spec', 'controller') if found else ''}"
    by_name = next((each for each in CONTROLLERS if each in said), "")
    used = ingress.annotations()
    by_use = (key for key, (prefix, _) in CONTROLLERS.items() if any(each.startswith(prefix) for each in used))
    return by_name or next(by_use, "nginx")


def settings_of(context: Context, ingress: Manifest, controller: str) -> Settings:
    """Every annotation that the controller reads."""
    prefix, groups = CONTROLLERS[controller]
    said = Annotations(context, ingress, prefix)
    settings = Settings()
    if controller == "nginx" and said.flag("canary"):
        groups = CANARY_GROUPS
    _read(settings, said, groups)
    if controller == "nginx" and "nginx" in class_of(ingress):
        _pass_over_others(ingress)
    if groups is CANARY_GROUPS:
        for name in ingress.annotations():
            line = ingress.lines.get((*ANNOTATIONS, name))
            if name.startswith(prefix) and line is not None and context.ledger.verdict_of(line) is None:
                ingress.dead((*ANNOTATIONS, name), "Of a canary only what chooses it and its servers is read.")
        return settings
    _close(settings, Annotations(context, ingress, ""))
    return settings


def _pass_over_others(ingress: Manifest) -> None:
    """Annotations of other controllers say nothing where the class names ingress-nginx."""
    for name in ingress.annotations():
        others = name.startswith(NGINX) or any(name.startswith(begin) for begin, _ in OF_OTHERS)
        if not others and not PROTECTS.search(name):
            ingress.dead((*ANNOTATIONS, name), NOT_OF_NGINX)


def _close(settings: Settings, said: Annotations) -> None:
    """Annotations that keep somebody out, and those that nobody knows and that are called as if they did."""
    for name in said.ingress.annotations():
        line = said.ingress.lines.get((*ANNOTATIONS, name))
        told = line is None or said.context.ledger.verdict_of(line) is not None
        if name in CLOSES:
            said.block(settings, name, CLOSES[name])
        elif not told and not is_known(name) and PROTECTS.search(name):
            said.block(settings, name, "This annotation is not known, and may keep somebody out.")


def _read(settings: Settings, said: Annotations, groups: Iterable[Group]) -> None:
    for group in groups:
        group(settings, said)
