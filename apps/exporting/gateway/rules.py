"""One route as rules of an HTTPRoute: what protects and cannot be said closes it, so that nothing opens by leaving."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.compiler.model.fleet import Pool
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import Route
from apps.exporting.contract import Notes
from apps.exporting.gateway.conditions import Matches, matches_of
from apps.exporting.gateway.filters import Filters, filters_of
from apps.exporting.gateway.services import Services

Rule = dict[str, Any]
CLOSED = "Left out, and answered with 500 so that nothing opens, as the Gateway API cannot say this ({what}):"
WIDER = "Closed together with requests that the route does not take, as its conditions cannot be said ({what}):"
LEFT_OUT = "Left out, so requests go to the next route that takes them, as conditions cannot be said ({what}):"
RESPONSES = "Fixed responses have no place in the Gateway API; these routes answer 500 instead:"
PATTERNS = "In which order patterns of one host are tried is the controller's to say:"
PARAMETERS = (
    "Which of several parameters of one name is compared, and whether ; parts them, is the controller's to say:"
)
REWRITE_OF_MANY = "The Host header that servers get is set for each of several pools, which not every controller does:"


@dataclass(frozen=True, slots=True)
class Ruling:
    """Makes rules of the routes of one load balancer."""

    rules: Mapping[str, Rules]
    services: Services
    notes: Notes

    def keeps_out(self, route: Route) -> bool:
        """Whether the route refuses requests, or asks of them what cannot be said."""
        return route.fixed_response is not None or bool(self._filters(route).closing)

    def rules_of(self, route: Route, closing: str = "") -> Iterator[Rule]:
        """The rules of a route, one for each of its methods; a rule that sends nowhere answers 500.

        `closing` says why the route is closed whatever it says itself.
        """
        found, said = matches_of(route), self._filters(route)
        said.closing = said.closing or closing
        if self._is_left_out(route, found, said):
            return
        body = {} if said.closing or route.fixed_response else self._body(route, said)
        if route.path_kind == "regex":
            self.notes.add(PATTERNS, f"route {route.label}")
        if any("queryParams" in match for match in found.matches):
            self.notes.add(PARAMETERS, f"route {route.label}")
        for match in found.matches:
            yield {"matches": [match], **body}

    def _filters(self, route: Route) -> Filters:
        return filters_of(route, self.rules.get(route.rule_set, Rules()))

    def _is_left_out(self, route: Route, found: Matches, said: Filters) -> bool:
        """Say what is not said of the route; whether it is left out of the manifests altogether."""
        label, unsaid = f"route {route.label}", " and ".join(dict.fromkeys(found.unsaid))
        harmless = bool(route.pools) and not said.closing
        if unsaid and harmless:
            self.notes.add(LEFT_OUT.format(what=unsaid), label)
            return True
        if said.closing:
            self.notes.add(CLOSED.format(what=said.closing), label)
        elif route.fixed_response:
            self.notes.add(RESPONSES, label)
        if unsaid:
            self.notes.add(WIDER.format(what=unsaid), label)
            said.closing = said.closing or unsaid
        for why in dict.fromkeys(said.unsaid) if not said.closing else ():
            self.notes.add(why, label)
        return False

    def _body(self, route: Route, said: Filters) -> Rule:
        filters = {"filters": said.filters} if said.filters else {}
        if route.redirect is not None:
            return filters
        if not any(self.services.reference(share.pool_id) for share in route.pools):
            return {}
        references = [self._reference(share.pool_id, share.weight, said) for share in route.pools]
        pools = [self.services.pools[share.pool_id] for share in route.pools if share.pool_id in self.services.pools]
        return {**filters, **self._times(route, pools), **self._retry(route, pools[0]), "backendRefs": references}

    def _reference(self, pool_id: str, weight: int, said: Filters) -> Rule:
        reference = self.services.reference(pool_id)
        if reference is None:
            return {**self.services.missing(pool_id), "weight": weight}
        pool = self.services.pools[pool_id]
        own: list[Rule] = []
        if pool.request_headers:
            headers = [{"name": name, "value": value} for name, value in pool.request_headers]
            own.append({"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": headers}})
        rewritten: Rule = next((each["urlRewrite"] for each in said.filters if each["type"] == "URLRewrite"), {})
        if pool.host_header and "hostname" not in rewritten:
            own.append({"type": "URLRewrite", "urlRewrite": {"hostname": pool.host_header}})
            self.notes.add(REWRITE_OF_MANY, f"pool {pool.label}")
        return {**reference, "weight": weight, **({"filters": own} if own else {})}

    def _times(self, route: Route, pools: list[Pool]) -> Rule:
        """The pool's own time is said as well: controllers have others by default."""
        rules = self.rules.get(route.rule_set, Rules())
        said = rules.timeouts.response_ms if rules.timeouts else None
        return {"timeouts": {"backendRequest": duration(said or max(each.server_timeout_ms for each in pools))}}

    def _retry(self, route: Route, pool: Pool) -> Rule:
        """What is no status (a connection that fails, no answer) is retried as the controller does."""
        own = self.rules.get(route.rule_set, Rules()).retries
        said = [each.attempts for each in (own, pool.retries) if each is not None]
        attempts = next((each for each in said if each is not None), None)
        if attempts is None:
            return {}
        codes = [int(each) for each in pool.retries.on if each.isdecimal()] if pool.retries else []
        return {"retry": {"attempts": attempts, **({"codes": codes} if codes else {})}}


def duration(milliseconds: int) -> str:
    """`30s`, `1s500ms`."""
    seconds, rest = divmod(milliseconds, 1000)
    return (f"{seconds}s" if seconds else "") + (f"{rest}ms" if rest or not seconds else "")
