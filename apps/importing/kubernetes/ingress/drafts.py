"""Routes of one class of Ingresses: of every entry one or several, in the order in which the controller decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from apps.compiler.grammar import GrammarError, header_value
from apps.compiler.matching.names import parameter_name
from apps.importing.kubernetes.ingress.annotations.unmapped import NGINX
from apps.importing.kubernetes.ingress.entries import Entry, Reading
from apps.importing.kubernetes.ingress.paths import PathOfOurs
from apps.importing.kubernetes.ingress.settings import Canary
from apps.importing.kubernetes.manifests.manifest import ANNOTATIONS
from apps.importing.kubernetes.objects.pools import Pools

ALWAYS, NEVER = "always", "never"
NOT_IMPORTED = {"status": 503, "body": "This path could not be imported.\n"}
NO_SERVICE = {"status": 503, "body": "No server is there for this request.\n"}


@dataclass(slots=True)
class Draft:
    """A route before it has a name: what matches, and what happens."""

    entry: Entry
    path: PathOfOurs
    action: dict[str, Any]
    rules: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)
    scheme: str = ""

    def spec(self, load_balancer: str) -> dict[str, Any]:
        """The specification of the route."""
        spec: dict[str, Any] = {"load_balancer": load_balancer, "hostname": self.entry.host}
        spec |= {"path": self.path.text, "path_kind": self.path.kind, **self.conditions}
        if self.scheme:
            spec["scheme"] = self.scheme
        spec["action"] = self.action
        rules = dict(self.rules)
        if "pools" in self.action:
            rewrite = dict(rules.get("rewrite", {}))
            if self.path.rewrite:
                rewrite["path"] = self.path.rewrite
            elif self.path.regex:
                rewrite |= {"path_regex": self.path.regex, "path_replacement": self.path.replacement}
            rules |= {"rewrite": rewrite} if rewrite else {}
            if self.path.prefix_rewrite:
                spec["prefix_rewrite"] = self.path.prefix_rewrite
        else:
            for name in ("rewrite", "body", "cors", "timeouts"):
                rules.pop(name, None)
        return spec | ({"rules": rules} if rules else {})


def drafts_of(entry: Entry, pools: Pools, canary: Entry | None, *, encrypted: bool) -> Iterator[Draft]:
    """The routes of one entry: a redirect to https, canaries by header and cookie, then the rest."""
    settings = entry.reading.settings
    redirected = settings.force_ssl or (settings.ssl_redirect and encrypted)
    # Over http nobody presents a certificate, so nobody is let in.
    alone = settings.client_certificates or (entry.reading.controller == "traefik" and encrypted)
    scheme = settings.scheme or ("https" if redirected or alone else "")
    if settings.redirect and not settings.blocked:  # nginx does this before it redirects to https or asks who it is
        yield Draft(entry, entry.path, {"redirect": settings.redirect}, {}, entry.conditions, settings.scheme)
        return
    if redirected:
        to_https = {"redirect": {"code": settings.ssl_code, "scheme": "https"}}
        yield Draft(entry, entry.path, to_https, {}, entry.conditions, "http")
    if settings.blocked:
        yield Draft(entry, entry.path, {"fixed_response": NOT_IMPORTED}, {}, entry.conditions, scheme)
        return
    if entry.target is None:
        yield Draft(entry, entry.path, {"fixed_response": NO_SERVICE}, settings.rules, entry.conditions, scheme)
        return
    main = pools.name_of(entry.target, settings.pool)
    yield from _served(Draft(entry, entry.path, {}, settings.rules, entry.conditions, scheme), main, pools, canary)


def _served(draft: Draft, main: str, pools: Pools, canary: Entry | None) -> Iterator[Draft]:
    choice = canary.reading.settings.canary if canary is not None else None
    if canary is None or choice is None or canary.target is None:
        yield replace(draft, action={"pools": [{"pool": main}]})
        return
    other = pools.name_of(canary.target, draft.entry.reading.settings.pool | canary.reading.settings.pool)
    if other == main:  # the canary is the same pool
        yield replace(draft, action={"pools": [{"pool": main}]})
        return
    for conditions, to_canary in _conditions(choice, canary.reading):
        pool = other if to_canary else main
        yield replace(draft, action={"pools": [{"pool": pool}]}, conditions=conditions)
    weights = [(main, choice.total - choice.weight), (other, choice.weight)]
    shares = [{"pool": pool, "weight": weight} for pool, weight in weights if weight]
    yield replace(draft, action={"pools": shares})


def _conditions(choice: Canary, reading: Reading) -> Iterator[tuple[dict[str, Any], bool]]:
    """Conditions in the order of ingress-nginx: the header, the cookie; `always` is the canary, `never` the other."""
    if choice.header and (choice.value or choice.pattern):
        match = {"value": choice.value} if choice.value else {"match": "regex", "value": choice.pattern}
        if _sayable(reading, "canary-by-header-value", choice.value):
            yield {"headers": [{"name": choice.header, **match}]}, True
    elif choice.header:
        yield {"headers": [{"name": choice.header, "value": ALWAYS}]}, True
        yield {"headers": [{"name": choice.header, "value": NEVER}]}, False
    if choice.cookie:
        try:
            name = parameter_name(choice.cookie)
        except GrammarError as error:
            reading.ingress.impossible((*ANNOTATIONS, NGINX + "canary-by-cookie"), error.message)
            return
        yield {"cookies": [{"name": name, "value": ALWAYS}]}, True
        yield {"cookies": [{"name": name, "value": NEVER}]}, False


def _sayable(reading: Reading, annotation: str, value: str) -> bool:
    try:
        if value:
            header_value(value)
    except GrammarError as error:
        reading.ingress.impossible((*ANNOTATIONS, NGINX + annotation), error.message)
        return False
    return True
