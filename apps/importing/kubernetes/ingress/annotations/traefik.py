"""Annotations of Traefik: entry points; what its middlewares do is not in the Ingress."""

from __future__ import annotations

from apps.importing.kubernetes.ingress.settings import Annotations, Group, Settings

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
    """What stands in middlewares may protect the paths, so they stay closed."""
    if said.text("router.middlewares") is not None:
        said.block(settings, "router.middlewares", "Middlewares are not read; they may ask for a password.")


TRAEFIK_GROUPS: tuple[Group, ...] = (entry_points, middlewares)
