"""What a global external Application Load Balancer does with a request, by the URL map that was rendered for it.

Written from Google's documentation alone, without a line of the renderer:

* https://cloud.google.com/compute/docs/reference/rest/v1/urlMaps: HostRule.hosts (`*` is any string of `[a-z0-9-.]*`),
  PathMatcher.routeRules (lowest priority number first, the first that matches), HttpRouteRule.matchRules (any of them;
  everything within one), HttpRouteRuleMatch (`fullPathMatch`, `prefixMatch` by characters, without query; case counts
  unless `ignoreCase`), HttpHeaderMatch (`:method`; exactly one criterion; `invertMatch`), HttpRedirectAction,
  UrlRewrite.pathPrefixRewrite (replaces the matching portion), WeightedBackendService.weight (its part of the sum),
  HttpFaultAbort (the status, for that percentage).
* https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto (VirtualHost.domains): exact
  names before wildcards, longer wildcards before shorter ones; these load balancers are made of Envoy.

Not documented, and so not known here: ports in redirects (taken to be dropped with a change of the scheme), headers
that are sent twice, percent-encoded and dotted paths before they are normalized.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from apps.compiler.questions.trace import Question, Share

CODES = {
    "MOVED_PERMANENTLY_DEFAULT": 301,
    "FOUND": 302,
    "SEE_OTHER": 303,
    "TEMPORARY_REDIRECT": 307,
    "PERMANENT_REDIRECT": 308,
}
CRITERIA = ("exact_match", "prefix_match", "suffix_match", "present_match", "regex_match", "range_match")
MOST_WEIGHT = 1000
ALWAYS = 100
PATHS = ("full_path_match", "prefix_match", "regex_match", "path_template_match")
_SERVICE = re.compile(r"\$\{google_compute_backend_service\.([a-z]+(?:_[0-9]+)?)\.id\}")

Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens: `pools` get it with `path` and `mirror` a copy, or `status` is answered (with `location`)."""

    pools: tuple[Share, ...] = ()
    path: str = ""
    status: int | None = None
    location: str | None = None
    mirror: str | None = None


def evaluate(url_map: Block, question: Question) -> Outcome:
    """What the load balancer does with the request.

    1. The host chooses a path matcher, else the map's own default holds.
    2. The first route rule that matches acts, else the matcher's default.
    """
    matcher = _path_matcher(url_map, question.bare_host)
    if matcher is None:
        return _act(url_map, question, "", word="default_")
    rules = matcher.get("route_rules", ())
    numbers = [rule["priority"] for rule in rules]
    assert len(set(numbers)) == len(numbers), "two rules of a matcher have one priority"
    for rule in sorted(rules, key=lambda rule: int(rule["priority"])):
        for match in rule["match_rules"]:
            matched = _matched_part(match, question)
            if matched is not None:
                return _act(rule, question, matched)
    return _act(matcher, question, "", word="default_")


def _path_matcher(url_map: Block, host: str) -> Block | None:
    found: dict[str, str] = {}
    matchers: dict[str, Block] = {each["name"]: each for each in url_map.get("path_matcher", ())}
    for rule in url_map.get("host_rule", ()):
        for pattern in rule["hosts"]:
            assert pattern not in found, f"two host rules name {pattern}"
            found[pattern] = rule["path_matcher"]
    taking = [pattern for pattern in found if _takes_host(pattern, host)]
    if not taking:
        return None
    best = min(taking, key=lambda pattern: (pattern.startswith("*"), -len(pattern)))
    return matchers[found[best]]


def _takes_host(pattern: str, host: str) -> bool:
    if not pattern.startswith("*"):
        return pattern == host
    rest = pattern[1:]
    assert rest[:1] in ("", ".", "-"), f"{pattern}: after * comes nothing, a dot or a hyphen"
    return re.fullmatch(r"[a-z0-9.-]*" + re.escape(rest), host) is not None


def _matched_part(match: Block, question: Question) -> str | None:
    """The part of the path that matched, None when the rule does not take the request."""
    chosen = [word for word in PATHS if word in match]
    assert len(chosen) == 1, "exactly one way to match the path"
    wanted, path = match[chosen[0]], question.bare_path
    assert re.fullmatch(r"/.{0,1023}", wanted), "a path begins with / and has at most 1024 characters"
    if match.get("ignore_case"):
        wanted, path = wanted.lower(), path.lower()
    takes = path == wanted if chosen[0] == "full_path_match" else path.startswith(wanted)
    assert chosen[0] in ("full_path_match", "prefix_match"), f"{chosen[0]} is not for global external load balancers"
    headers = {":method": question.method} | {name.lower(): value for name, value in question.headers.items()}
    holds = takes and all(_holds(each, headers) for each in match.get("header_matches", ()))
    holds = holds and all(_asks(each, question) for each in match.get("query_parameter_matches", ()))
    return wanted if holds else None


def _asks(condition: Block, question: Question) -> bool:
    """HttpQueryParameterMatch: exactly one of present, exact and regex."""
    assert len(condition.keys() & {"present_match", "exact_match"}) == 1, condition
    pairs = parse_qsl(question.path.partition("?")[2].replace(";", "&"), keep_blank_values=True)
    sent = [value for key, value in pairs if key == condition["name"]]
    return bool(sent) if "present_match" in condition else condition["exact_match"] in sent


def _holds(condition: Block, headers: Mapping[str, str]) -> bool:
    chosen = [word for word in CRITERIA if word in condition]
    assert len(chosen) == 1, "exactly one criterion in a header match"
    wanted, value = condition[chosen[0]], headers.get(condition["header_name"].lower())
    match chosen[0]:
        case "exact_match":
            found = value == wanted
        case "prefix_match":
            found = value is not None and value.startswith(wanted)
        case "suffix_match":
            found = value is not None and value.endswith(wanted)
        case "present_match":
            found = value is not None
        case other:
            raise AssertionError(f"{other} is not for global external load balancers")
    return found is not bool(condition.get("invert_match"))


def _act(where: Block, question: Question, matched: str, *, word: str = "") -> Outcome:
    """What a rule, or the default of a matcher or map, does with a request of which it matched this part."""
    redirects = where.get(f"{word}url_redirect", ())
    actions = where.get(f"{word}route_action", ())
    action: Block = actions[0] if actions else {}
    weighted = action.get("weighted_backend_services", ())
    primary = [bool(redirects), f"{word}service" in where, bool(weighted)]
    assert sum(primary) == 1, "exactly one of redirect, service and weighted services"
    if redirects:
        return _redirected(redirects[0], question, matched)
    aborted = _abort(action)
    if aborted is not None:
        return Outcome(status=aborted)
    shares = weighted or ({"backend_service": where[f"{word}service"], "weight": 1},)
    whole = sum(share["weight"] for share in shares)
    assert all(0 <= share["weight"] <= MOST_WEIGHT for share in shares), f"weights are 0 to {MOST_WEIGHT}"
    pools = tuple(Share(pool_of(each["backend_service"]), each["weight"] / whole) for each in shares if each["weight"])
    return Outcome(pools, _rewritten(action, question, matched), mirror=_mirror(action))


def _mirror(action: Block) -> str | None:
    """Every request is copied: the provider has no percentage."""
    policies = action.get("request_mirror_policy", ())
    assert len(policies) <= 1, "one mirror for an action"
    return pool_of(policies[0]["backend_service"]) if policies else None


def _abort(action: Block) -> int | None:
    for policy in action.get("fault_injection_policy", ()):
        for abort in policy.get("abort", ()):
            assert abort["percentage"] == ALWAYS, "an answer that is given always is a fault of 100 %"
            assert 200 <= abort["http_status"] <= 599, "a status is 200 to 599"
            return int(abort["http_status"])
    return None


def _rewritten(action: Block, question: Question, matched: str) -> str:
    for rewrite in action.get("url_rewrite", ()):
        return str(rewrite["path_prefix_rewrite"]) + question.path[len(matched) :]
    return question.path


def _redirected(redirect: Block, question: Question, matched: str) -> Outcome:
    assert not ("path_redirect" in redirect and "prefix_redirect" in redirect), "one of path and prefix"
    secure = redirect.get("https_redirect", False)
    assert not (secure and question.scheme == "https"), "httpsRedirect is for maps of http proxies only"
    scheme = "https" if secure else question.scheme
    host = redirect.get("host_redirect") or (question.host.partition(":")[0] if secure else question.host)
    bare, mark, query = question.path.partition("?")
    path = redirect.get("path_redirect") or bare
    if "prefix_redirect" in redirect:
        path = redirect["prefix_redirect"] + bare[len(matched) :]
    kept = "" if redirect.get("strip_query") or not query else mark + query
    code = CODES[redirect.get("redirect_response_code", "MOVED_PERMANENTLY_DEFAULT")]
    return Outcome(status=code, location=f"{scheme}://{host}{path}{kept}")


def pool_of(service: str) -> str:
    """`${google_compute_backend_service.pool_1.id}` → `pool-1`."""
    found = _SERVICE.fullmatch(service)
    assert found is not None, f"{service} is no backend service of the document"
    return found[1].replace("_", "-")
