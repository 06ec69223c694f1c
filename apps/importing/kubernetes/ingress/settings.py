"""What the annotations of one Ingress say of its routes and pools, whichever controller reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.manifests.manifest import ANNOTATIONS, Manifest

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)?")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Canary:
    """Which requests go to the canary: by a header, by a cookie, then a share of all others."""

    header: str = ""
    value: str = ""
    pattern: str = ""
    cookie: str = ""
    weight: int = 0
    total: int = 100


@dataclass(slots=True)
class Settings:
    """`blocked` says why the paths answer 503: what protects or rewrites them has no place here."""

    pool: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    rewrite: str = ""
    prefix_rewrite: str = ""
    use_regex: bool = False
    ssl_redirect: bool = False
    force_ssl: bool = False
    ssl_code: int = 308
    redirect: dict[str, Any] | None = None
    app_root: str = ""
    aliases: list[str] = field(default_factory=list)
    www: bool = False
    passthrough: bool = False
    canary: Canary | None = None
    blocked: str = ""
    client_certificates: dict[str, Any] | None = None
    scheme: str = ""

    def rule(self, block: str, **values: Any) -> None:
        """Add to a block of rules."""
        self.rules.setdefault(block, {}).update(values)


@dataclass(slots=True)
class Annotations:
    """Those of one Ingress under one prefix, such as `nginx.ingress.kubernetes.io/`."""

    context: Context
    ingress: Manifest
    prefix: str

    def text(self, name: str) -> str | None:
        """The text of one, None where it is not there or empty."""
        return self.ingress.annotations().get(self.prefix + name, "").strip() or None

    def first(self, *names: str) -> str:
        """The first of several names of the same thing that is there; else the first name."""
        return next((name for name in names if self.text(name) is not None), names[0])

    def flag(self, name: str) -> bool | None:
        """Whether it is true, None where nothing is said."""
        text = self.text(name)
        return None if text is None else text.lower() in ("true", "on", "yes", "1")

    def number(self, name: str, least: int, most: int) -> int | None:
        """A number within these bounds; a wrong one is said and is none."""
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch(r"\d{1,12}", text):
            self.impossible(name, "This is no whole number.")
            return None
        found = int(text)
        if least <= found <= most:
            self.mapped(name)
        else:
            self.differs(name, f"Spillway takes {least} to {most} here; the nearest is used.")
        return min(max(found, least), most)

    def milliseconds(self, name: str, unit: str = "s") -> int | None:
        """A duration; without a unit it is in this one."""
        text = self.text(name)
        if text is None:
            return None
        match = _DURATION.fullmatch(text)
        found = int(match[1]) * _UNITS[match[2] or unit] if match else 0
        if found <= 0:
            self.impossible(name, "This is no duration, such as 30s.")
            return None
        if found > LONGEST_MS:
            self.differs(name, "An hour is the longest time.")
        else:
            self.mapped(name)
        return min(found, LONGEST_MS)

    def ref(self, name: str) -> tuple[str, str] | None:
        """A Secret or the like: `namespace/name`, or a name in the namespace of the Ingress."""
        text = self.text(name)
        if text is None:
            return None
        namespace, mark, rest = text.partition("/")
        return (namespace, rest) if mark else (self.ingress.namespace, text)

    def mapped(self, *names: str) -> None:
        """These work as they did."""
        for name in names:
            self.ingress.mapped((*ANNOTATIONS, self.prefix + name))

    def differs(self, name: str, reason: str) -> None:
        """It works, and differs."""
        self.ingress.differs((*ANNOTATIONS, self.prefix + name), reason)

    def impossible(self, name: str, reason: str) -> None:
        """It has no place here."""
        self.ingress.impossible((*ANNOTATIONS, self.prefix + name), reason)

    def dead(self, name: str, reason: str) -> None:
        """Nothing uses it."""
        self.ingress.dead((*ANNOTATIONS, self.prefix + name), reason)

    def block(self, settings: Settings, name: str, reason: str) -> None:
        """Its paths cannot be served without it."""
        settings.blocked = reason
        self.impossible(name, f"{reason} Its paths answer 503 until you say it in another way.")

    def wait(self, settings: Settings, name: str, reason: str) -> None:
        """Its paths cannot be served until a manifest that is missing is given."""
        settings.blocked = reason
        self.differs(name, f"{reason} Its paths answer 503 until you add its manifest.")


Group = Callable[[Settings, Annotations], None]
"""Annotations that belong together: read, and said what became of each."""
