"""Annotations of Traefik: entry points, and the middlewares that its Ingresses name."""

from __future__ import annotations

from apps.importing.kubernetes.ingress.settings import Annotations, Group, Settings
from apps.importing.kubernetes.traefik.middlewares import Steps, take_named

ENTRY_POINTS = {"web": "http", "websecure": "https"}


def entry_points(settings: Settings, said: Annotations) -> None:
    """`web` and `websecure`, as Traefik's chart names them; it redirects nobody to https by itself."""
    text = said.text("router.entrypoints")
    if text is None:
        return
    schemes = {ENTRY_POINTS.get(each.strip(), "") for each in text.split(",")}
    if "" in schemes:
        said.differs("router.entrypoints", "Entry points of other names are ports of their own; all ports serve this.")
    elif len(schemes) == 1:
        settings.scheme = schemes.pop()
    said.mapped("router.entrypoints")


def middlewares(settings: Settings, said: Annotations) -> None:
    """`shop-strip@kubernetescrd` is the Middleware strip of shop; one that is missing may ask for a password."""
    text = said.text("router.middlewares")
    if text is None:
        return
    steps = Steps(said.context, settings)
    for name in filter(None, (each.strip() for each in text.split(","))):
        if not take_named(steps, name.removesuffix("@kubernetescrd")):
            said.wait(settings, "router.middlewares", f"The Middleware {name} is not in the file.")
            said.context.need(f"The Middleware {name}; add it to the YAML.")
    if steps.moves:
        said.block(settings, "router.middlewares", "Paths that Middlewares change are read of IngressRoutes alone.")
    said.mapped("router.middlewares")


TRAEFIK_GROUPS: tuple[Group, ...] = (entry_points, middlewares)
