"""Every host and path that Ingresses of one class serve, with its backend and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.compiler.matching import names
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.ingress.controllers import class_of
from apps.importing.kubernetes.ingress.paths import ITSELF, PathOfOurs, Unsayable, path_of_nginx, plain_path
from apps.importing.kubernetes.ingress.settings import Settings
from apps.importing.kubernetes.ingress.spellings import OPEN, other_spellings
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.endpoints import Target
from apps.importing.values.parsing import Path

ANY = "*"
# Their paths of no said type are whole paths, or end with a star for all that is below.
CLOUDS = ("alb", "gce", "gce-internal")
LEFT_OVER = "Replace this variable first, as whoever applies the file does (envsubst)."
PROTECTS = {"access", "basic_auth", "client_limit"}
PREFIX_IN_TRAEFIK = "Traefik compares beginnings of texts unless it is told otherwise; here whole segments count."


@dataclass(slots=True)
class Reading:
    """One Ingress with what its annotations say."""

    ingress: Manifest
    settings: Settings
    controller: str
    hosts: list[str] = field(default_factory=list)
    # Of an object that says more than hosts and paths; else they are read from the Ingress.
    entries: list[Entry] | None = None


@dataclass(slots=True)
class Entry:
    """A path of a host. `at` is where it stands in the Ingress."""

    reading: Reading
    host: str
    path: PathOfOurs
    target: Target | None
    at: Path
    conditions: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def path_at(self) -> Path:
        """Where its path is said."""
        return (*self.at, "match" if self.reading.ingress.kind == "IngressRoute" else "path")


def entries_of(context: Context, readings: list[Reading]) -> list[Entry]:
    """All entries in the order of the file; the oldest Ingress has a host and path, later ones are told."""
    regex_hosts = {host for each in readings for host in _hosts(each) if _is_regex(each)}
    seen: dict[tuple[object, ...], Entry] = {}
    for reading in readings:
        found = reading.entries if reading.entries is not None else _entries(context, reading, regex_hosts)
        for entry in found:
            asked = (entry.host, entry.path.kind, entry.path.text, repr(entry.conditions), reading.settings.scheme)
            key = (*asked, reading.settings.canary is not None)
            if key in seen:
                other = seen[key].reading.ingress
                reading.ingress.dead(entry.at, f"{other.namespace}/{other.name} has this host and path already.")
            else:
                seen[key] = entry
    return list(seen.values())


def _is_regex(reading: Reading) -> bool:
    settings = reading.settings
    rewrites = settings.rewrite and any(each != settings.rewrite for each in _written(reading.ingress))
    return reading.controller == "nginx" and (settings.use_regex or bool(rewrites))


def _written(ingress: Manifest) -> Iterator[str]:
    for path, _ in ingress.each("spec", "rules"):
        for _, each in ingress.each(*path, "http", "paths"):
            yield str(each.get("path") or "/")


def _hosts(reading: Reading) -> Iterator[str]:
    for _, rule in reading.ingress.each("spec", "rules"):
        yield str(rule.get("host") or ANY)


def host_of(ingress: Manifest, at: Path, text: object) -> str | None:
    """A host of ours; `*.` is one label more, as in Kubernetes."""
    if text in (None, ""):
        return ANY
    try:
        return names.hostname_of_route(str(text).lower())
    except GrammarError as error:
        ingress.impossible(at, LEFT_OVER if "$" in str(text) else error.message)
        return None


def _entries(context: Context, reading: Reading, regex_hosts: set[str]) -> Iterator[Entry]:
    ingress = reading.ingress
    for at, rule in ingress.each("spec", "rules"):
        host = host_of(ingress, (*at, "host"), rule.get("host"))
        if host is None:
            ingress.impossible((*at, "http"), "Its host has no place here.")
            continue
        ingress.mapped((*at, "host"))
        reading.hosts.append(host)
        for path_at, said in ingress.each(*at, "http", "paths"):
            found = _path(context, reading, path_at, said, regex_host=host in regex_hosts)
            target = target_of(ingress, (*path_at, "backend"))
            # Aliases are names of the first host.
            aliases = reading.settings.aliases if host == reading.hosts[0] else ()
            for path in spelled(reading, path_at, found) if found is not None else ():
                yield from (Entry(reading, each, path, target, path_at) for each in (host, *aliases))


def _is_protected(settings: Settings) -> bool:
    return bool(settings.blocked or settings.rules.keys() & PROTECTS)


def spelled(reading: Reading, at: Path, found: PathOfOurs) -> list[PathOfOurs]:
    """The path, and other spellings of one that is protected: those would go to paths that are open."""
    try:
        more = other_spellings(found) if _is_protected(reading.settings) else None
    except GrammarError:
        reading.ingress.differs((*at, "path"), OPEN)
        more = None
    return [found, *([more] if more else [])]


def _path(
    context: Context, reading: Reading, at: Path, said: Mapping[str, Any], *, regex_host: bool
) -> PathOfOurs | None:
    ingress, settings = reading.ingress, reading.settings
    text, kind = str(said.get("path") or "/"), str(said.get("pathType") or "ImplementationSpecific")
    of_cloud = class_of(ingress) in CLOUDS and kind == "ImplementationSpecific"
    nginx = reading.controller == "nginx" and not of_cloud
    if of_cloud:
        kind = "Prefix" if text.endswith("/*") or not said.get("path") else "Exact"
        text = text.removesuffix("*")
    try:
        plain = plain_path(text, kind) if not nginx else None
        found = plain or path_of_nginx(text, kind, settings.rewrite, regex_host=regex_host)
    except Unsayable as why:
        ingress.impossible(at, f"{why} The path is left out.")
        if _is_protected(settings):  # its requests would go to paths that are open
            name = f"{ingress.namespace}/{ingress.name}"
            context.need(f"A plainer path in the YAML than {text} of the Ingress {name}, which protects it.")
        return None
    for name in ("path", "pathType"):
        ingress.mapped((*at, name))
    for reason in found.differs:
        ingress.differs((*at, "path"), reason)
    if of_cloud and kind == "Prefix" and text != "/":
        ingress.differs((*at, "path"), ITSELF.format(path=found.text))
    if reading.controller == "traefik" and kind == "Prefix" and text != "/":
        ingress.differs((*at, "path"), PREFIX_IN_TRAEFIK)
    return found


def target_of(ingress: Manifest, at: Path) -> Target | None:
    """The Service of a backend; None for one that is none."""
    name = ingress.at(*at, "service", "name") or ingress.at(*at, "serviceName")
    port = ingress.at(*at, "service", "port", "number") or ingress.at(*at, "service", "port", "name")
    port = port or ingress.at(*at, "servicePort")
    if not name or port is None:
        ingress.impossible(at, "Only a Service with a port can be a backend; the path answers 503.")
        return None
    for part in ("service", "serviceName", "servicePort"):
        ingress.mapped((*at, part))
    return Target(ingress.namespace, str(name), str(port))
