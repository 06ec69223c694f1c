"""One rule of a URL map as requests that it takes and what it does with them, in our words.

A rule's match rules are alternatives, a route of ours has one path. So a rule becomes one :class:`Part` for each
alternative; parts that differ in their method alone, and the two halves of a prefix (`/a` and what begins with `/a/`),
are one route again. What cannot be said raises `Unsaid`, and the rule is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.adoption.candidates import Candidate, Header, Unsaid
from apps.compiler.grammar import METHODS, REDIRECT_CODES, GrammarError, path, prefix_path
from apps.compiler.targets.terraform.google.url_map import REDIRECT_CODES as GOOGLE_CODES

Block = Mapping[str, Any]

CODES = {word: code for code, word in GOOGLE_CODES.items()}
ALWAYS = 100
MOST_POOLS = 8
MIRROR = "requestMirrorPolicy"
# Parts of an action without which a request still goes where it went.
LOST = {
    "timeout": "the server timeout of the pool applies to the route",
    "retryPolicy": "requests are retried only if the connection fails",
    "corsPolicy": "the load balancer does not answer preflight requests",
    MIRROR: "requests are not mirrored",
    "maxStreamDuration": "only the server timeout ends streams",
    "cachePolicy": "nothing is cached",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Requests that a rule takes: `whole` the path itself, else all that begins with it.

    `headers` are conditions as documents have them; `action` is a hashable form of what is done, `rewrite` what
    replaces the matched part of the path, `mirror` the service that gets copies.
    """

    path: str
    whole: bool
    methods: tuple[str, ...]
    headers: tuple[Header, ...]
    action: tuple[Any, ...]
    rewrite: str | None = None
    mirror: str | None = None


def parts_of(rule: Block, action: tuple[Any, ...]) -> Iterator[Part]:
    """The parts of one route rule. Raises Unsaid."""
    rewrite, mirror = _rewrite(rule.get("routeAction", {})), mirror_of(rule)
    for match in rule.get("matchRules", ()):
        path, whole = _path(match)
        methods, headers = _conditions(match)
        yield Part(path, whole, methods, headers, action, rewrite, mirror)


def mirror_of(rule: Block) -> str | None:
    """The service that gets a copy of every request of a route rule; a mirror of some requests is none of ours."""
    policy: Block = (rule.get("routeAction") or {}).get(MIRROR) or {}
    is_whole = float(policy.get("mirrorPercent", ALWAYS)) == ALWAYS
    return str(policy["backendService"]) if is_whole and policy.get("backendService") else None


def _path(match: Block) -> tuple[str, bool]:
    for field, what in (
        ("regexMatch", "a regular expression on the path"),
        ("pathTemplateMatch", "a path template"),
        ("queryParameterMatches", "a condition on the query"),
        ("metadataFilters", "a filter on metadata"),
        ("ignoreCase", "a case-insensitive path"),
    ):
        if match.get(field):
            raise Unsaid(f"It matches {what}, but routes match path, method and headers literally.")
    whole = "fullPathMatch" in match
    return str(match["fullPathMatch"] if whole else match.get("prefixMatch", "/")), whole


def _conditions(match: Block) -> tuple[tuple[str, ...], tuple[Header, ...]]:
    methods: tuple[str, ...] = ()
    headers: list[Header] = []
    for condition in match.get("headerMatches", ()):
        name, inverted = condition["headerName"], bool(condition.get("invertMatch"))
        if name.lower() == ":method":
            if inverted or condition.get("exactMatch") not in METHODS:
                raise Unsaid(f"It matches a method other than one of {', '.join(sorted(METHODS))}.")
            methods = (condition["exactMatch"],)
        elif "exactMatch" in condition and not inverted:
            headers.append((("match", "equals"), ("name", name), ("value", condition["exactMatch"])))
        elif condition.get("presentMatch"):
            headers.append((("match", "absent" if inverted else "present"), ("name", name)))
        else:
            raise Unsaid(
                f"It compares header {name} other than as a whole, but routes test only the exact value or presence."
            )
    return methods, tuple(sorted(headers))


def action_of(rule: Block, word: str = "") -> tuple[Any, ...]:
    """What is done: `("pools", (service, weight), …)`, `("redirect", …)`, `("status", code)`. Raises Unsaid.

    `word` is `default` for the defaults of maps and matchers: their fields begin with it.
    """
    redirect = rule.get(field_of(word, "urlRedirect"))
    if redirect:
        return ("redirect", *_redirect(redirect))
    action: Block = rule.get(field_of(word, "routeAction")) or {}
    if word and _rewrite(action) is not None:
        raise Unsaid("It rewrites paths that no rule matches, but a route rewrites only its own prefix.")
    status = _aborted(action)
    if status is not None:
        return ("status", status)
    weighted = [
        (each["backendService"], int(each.get("weight", 0))) for each in action.get("weightedBackendServices", ())
    ]
    service = rule.get(field_of(word, "service"))
    shares = tuple(share for share in weighted if share[1]) or (((service, 1),) if service else ())
    if not shares:
        raise Unsaid("It has no backend service.")
    if len(shares) > MOST_POOLS:
        raise Unsaid(f"It divides requests among {len(shares)} services, but a route has at most {MOST_POOLS} pools.")
    return ("pools", *shares)


def field_of(word: str, name: str) -> str:
    """`default`, `routeAction` → `defaultRouteAction`; without a word the name itself."""
    return word + name[0].upper() + name[1:] if word else name


def _aborted(action: Block) -> int | None:
    abort = action.get("faultInjectionPolicy", {}).get("abort")
    if not abort:
        return None
    status = int(abort.get("httpStatus", 503))
    if float(abort.get("percentage", 0)) != ALWAYS or 300 <= status <= 399:
        raise Unsaid("It injects faults into some requests.")
    return status


def _redirect(redirect: Block) -> tuple[tuple[str, Any], ...]:
    if redirect.get("prefixRedirect"):
        raise Unsaid("It redirects to a prefix, which is not read into a redirect yet.")
    code = CODES.get(redirect.get("redirectResponseCode", "MOVED_PERMANENTLY_DEFAULT"), 0)
    if code not in REDIRECT_CODES:
        raise Unsaid(f"It redirects with {redirect.get('redirectResponseCode')}.")
    words = {
        "code": code,
        "scheme": "https" if redirect.get("httpsRedirect") else None,
        "host": redirect.get("hostRedirect"),
        "path": redirect.get("pathRedirect"),
    }
    found = tuple((word, value) for word, value in words.items() if value)
    if len(found) == 1:
        raise Unsaid("It redirects to the same URL.")
    return (*found, ("keep_query", not redirect.get("stripQuery", False)))


def _rewrite(action: Block) -> str | None:
    rewrite: Block = action.get("urlRewrite") or {}
    if rewrite.get("hostRewrite") or rewrite.get("pathTemplateRewrite") or rewrite.get("regexRewrite"):
        raise Unsaid("It rewrites the host, or the path by a pattern, but a route rewrites only its prefix.")
    found = rewrite.get("pathPrefixRewrite")
    return None if found is None else str(found)


def covers(one: Part, other: Part) -> bool:
    """Whether every request of the other is one of the first, as Google compares."""
    if one.methods or one.headers:
        return False
    return one.path == other.path if one.whole else other.path.startswith(one.path)


def lost_by(action: Block, *, kept: str = "") -> Iterator[str]:
    """What else the action did, in sentences; `kept` is a part of it that is not lost."""
    lost = sorted(field for field in LOST.keys() & action.keys() - {kept} if action[field])
    yield from (f"{LOST[field].capitalize()}." for field in lost)


def candidates_of(parts: list[Part]) -> list[Candidate]:
    """Parts in the order of their rules as routes. Raises Unsaid.

    1. Alternatives that differ in their method alone are one.
    2. The whole path `/a` and the prefix `/a/` that do the same are the prefix `/a` of ours.
    3. What is left alone is an exact path, or a prefix that takes a little more or less than it did.
    """
    joined: dict[Part, set[str]] = {}
    for part in parts:
        joined.setdefault(replace(part, methods=()), set()).update(part.methods or METHODS)
    left = [replace(part, methods=tuple(sorted(methods))) for part, methods in joined.items()]
    found = []
    while left:
        part = left.pop(0)
        twin = next((each for each in left if _are_halves(part, each)), None)
        if twin is not None:
            left.remove(twin)
            part = part if not part.whole else twin
        found.append(_candidate(part, complete=twin is not None))
    return found


def _are_halves(one: Part, other: Part) -> bool:
    whole, below = (one, other) if one.whole else (other, one)
    if not whole.whole or below.whole or below.path != f"{whole.path}/" or _unlike(whole, below):
        return False
    return (whole.rewrite is None) == (below.rewrite is None) and (
        whole.rewrite is None or whole.rewrite == _prefix_rewrite(below)
    )


def _unlike(one: Part, other: Part) -> bool:
    said, other_said = ((each.methods, each.headers, each.action, each.mirror) for each in (one, other))
    return said != other_said


def _prefix_rewrite(part: Part) -> str | None:
    """What our route rewrites its prefix to; a prefix that ends in a slash must be replaced by one that does."""
    if part.rewrite is None or not part.path.endswith("/"):
        return part.rewrite
    if not part.rewrite.endswith("/"):
        raise Unsaid(f"It replaces {part.path} by {part.rewrite}, which joins segments.")
    return part.rewrite.rstrip("/") or "/"


def _candidate(part: Part, *, complete: bool) -> Candidate:
    methods = () if set(part.methods) == METHODS else part.methods
    rest = (methods, part.headers, part.action)
    try:
        if part.whole:
            if part.rewrite not in (None, part.path):
                raise Unsaid("It rewrites a whole path, but a route rewrites only prefixes.")
            return Candidate(path(part.path), True, *rest, None, mirror=part.mirror)
        stem = prefix_path(part.path.rstrip("/") or "/")
    except GrammarError as error:
        raise Unsaid(f"Its path {part.path!r} is not supported. {error.message}") from error
    loss = ""
    if stem != "/" and not complete:
        closed = part.path.endswith("/")
        loss = (
            f"It also matches {stem} itself." if closed else f"It matches {stem} and paths below it, but not {stem}x."
        )
    rewrite = _prefix_rewrite(part)
    return Candidate(stem, False, *rest, rewrite, loss, part.mirror)
