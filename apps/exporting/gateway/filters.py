"""What policies say of a route, as filters of its rule; what cannot be said, and what closes the route therefore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.header_text import is_format
from apps.compiler.model.policy import Cors, HeaderChanges, Rewrite, Rules, SecurityHeaders
from apps.compiler.model.shared import Redirect, Route

MOST = 16  # headers that one filter sets, adds or removes
PROTECTING = {
    "access": "networks that are let in or kept out",
    "basic_auth": "names and passwords",
    "api_keys": "API keys",
    "jwt": "signed tokens",
}
# Blocks that bound or observe, but let nobody in who was kept out.
ASIDE = {
    "client_limit": "Limits per client have no place in the Gateway API:",
    "typed_headers": "Headers by media type have no place in the Gateway API:",
    "error_pages": "Error pages have no place in the Gateway API:",
    "body": "The longest body has no place in the Gateway API:",
    "bandwidth": "Limits of bandwidth have no place in the Gateway API:",
    "response_rewrite": "Changes of redirects and cookies of servers have no place in the Gateway API:",
    "overflow": "Overflow to other regions has no place in the Gateway API:",
    "split": "A client of a split may change sides with each request:",
    "log": "What the request log keeps is the controller's to say:",
}
REWRITES = "the path or the query is rewritten by a pattern or by parameters"
VARIABLES = "Request headers with variables are removed from requests of clients, and not set:"
VARIABLES_BACK = "Response headers with variables are not sent:"
ABSENT = "Headers that are set where servers send none have no place in the Gateway API:"
MANY = "Headers beyond the sixteenth are not changed:"
TUNNELS = "How long an upgraded connection may be silent is the controller's to say:"
CACHING = "What is said of caches where servers say nothing has no place in the Gateway API:"
SENT_AGAIN = "Whether a request is sent again that servers may have got already is the controller's to say:"
QUERIES = "Redirects keep the query of the request, and add nothing to it:"


@dataclass(slots=True)
class Filters:
    """Filters of a rule; sentences about what they leave out; why the route must be closed, empty if it need not be."""

    filters: list[dict[str, Any]] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)
    closing: str = ""

    def add(self, kind: str, name: str, body: dict[str, Any]) -> None:
        """A filter that says something."""
        if body:
            self.filters.append({"type": kind, name: body})


def filters_of(route: Route, rules: Rules) -> Filters:
    """Everything that holds for the route, but for its pools."""
    found = Filters(closing=_closing(rules))
    found.unsaid += [why for block, why in ASIDE.items() if getattr(rules, block) is not None]
    if rules.timeouts and rules.timeouts.tunnel_ms is not None:
        found.unsaid.append(TUNNELS)
    if rules.retries and rules.retries.after_sending is not None:
        found.unsaid.append(SENT_AGAIN)
    found.add("RequestHeaderModifier", "requestHeaderModifier", _changes(rules.request_headers, found, VARIABLES))
    answered = _changes(rules.response_headers, found, VARIABLES_BACK)
    if rules.response_headers and rules.response_headers.set_if_absent:
        found.unsaid.append(ABSENT)
    _add_security(answered, rules.security_headers, found)
    found.add("ResponseHeaderModifier", "responseHeaderModifier", answered)
    found.add("CORS", "cors", _cors(rules.cors) if rules.cors else {})
    if route.redirect is not None:
        found.add("RequestRedirect", "requestRedirect", _redirect(route.redirect, found))
    elif route.pools:
        found.add("URLRewrite", "urlRewrite", _rewrite(route, rules.rewrite or Rewrite(), found))
    return found


def _closing(rules: Rules) -> str:
    for block, words in PROTECTING.items():
        if getattr(rules, block) is not None:
            return words
    return "maintenance" if rules.maintenance and rules.maintenance.enabled else ""


def _changes(changes: HeaderChanges | None, found: Filters, of_variables: str) -> dict[str, Any]:
    """A header of requests that cannot be set is removed, or closes: servers must not take a client's word for it."""
    said, gone = changes or HeaderChanges(), list((changes or HeaderChanges()).remove or ())
    body: dict[str, Any] = {}
    for action, pairs in (("set", said.set or ()), ("add", said.add or ())):
        plain = [{"name": name, "value": value} for name, value in pairs if not is_format(value)]
        formats = [name for name, value in pairs if is_format(value)]
        if formats:
            found.unsaid.append(of_variables)
            gone += formats if of_variables == VARIABLES and action == "set" else []
        if len(plain) > MOST and of_variables == VARIABLES and action == "set":
            found.closing = found.closing or "more than sixteen headers of requests are set"
        elif len(plain) > MOST:
            found.unsaid.append(MANY)
        body |= {action: plain[:MOST]} if plain else {}
    if len(gone) > MOST:
        found.closing = found.closing or "more than sixteen headers are removed"
    return body | ({"remove": list(dict.fromkeys(gone))[:MOST]} if gone else {})


def _add_security(body: dict[str, Any], said: SecurityHeaders | None, found: Filters) -> None:
    """Strict-Transport-Security goes over http as well, where browsers ignore it (RFC 6797, 8.1)."""
    if said is None:
        return
    if said.caching:
        found.unsaid.append(CACHING)
    known = {each["name"].lower() for each in body.get("set", ())}
    more = [{"name": name, "value": value} for name, value in _security(said) if name.lower() not in known]
    if more:
        whole = body.get("set", []) + more
        body["set"] = whole[:MOST]
        found.unsaid += [MANY] if len(whole) > MOST else []


def _security(said: SecurityHeaders) -> Iterator[tuple[str, str]]:
    if said.no_sniff:
        yield "X-Content-Type-Options", "nosniff"
    if said.frames:
        yield "X-Frame-Options", said.frames.upper()
    if said.referrer:
        yield "Referrer-Policy", said.referrer
    if said.hsts_seconds is not None:
        below = "; includeSubDomains" if said.hsts_subdomains else ""
        yield "Strict-Transport-Security", f"max-age={said.hsts_seconds}{below}"


def _cors(said: Cors) -> dict[str, Any]:
    if not said.origins:
        return {}
    body: dict[str, Any] = {"allowOrigins": list(said.origins), "allowMethods": list(said.methods or ("GET",))[:9]}
    for name, values in (("allowHeaders", said.headers), ("exposeHeaders", said.exposed_headers)):
        body |= {name: list(values)} if values else {}
    body |= {"allowCredentials": True} if said.credentials else {}
    return body | ({"maxAge": said.max_age_s} if said.max_age_s else {})


def _redirect(said: Redirect, found: Filters) -> dict[str, Any]:
    if not said.keep_query or said.query:
        found.unsaid.append(QUERIES)
    body: dict[str, Any] = {"statusCode": said.code}
    for name, value in (("scheme", said.scheme), ("hostname", said.host), ("port", said.port)):
        body |= {name: value} if value is not None else {}
    if said.path is not None:
        body["path"] = {"type": "ReplaceFullPath", "replaceFullPath": said.path}
    elif said.prefix is not None:
        body["path"] = {"type": "ReplacePrefixMatch", "replacePrefixMatch": said.prefix}
    return body


def _rewrite(route: Route, said: Rewrite, found: Filters) -> dict[str, Any]:
    by_pattern = said.path is None and said.path_regex is not None
    if by_pattern or said.drop_query or said.query_keep is not None or said.query_drop or said.query_set:
        found.closing = found.closing or REWRITES
    body: dict[str, Any] = {"hostname": said.host} if said.host is not None else {}
    if said.path is not None:
        body["path"] = {"type": "ReplaceFullPath", "replaceFullPath": said.path}
    elif route.prefix_rewrite is not None:
        body["path"] = {"type": "ReplacePrefixMatch", "replacePrefixMatch": route.prefix_rewrite}
    return body
