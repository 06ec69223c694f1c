"""One rule of a listener as hosts, and requests that it takes, in our words.

A rule of an ALB asks for several conditions at once, each with alternative values in which `*` and `?` are wildcards
("Condition types for listener rules" in AWS's guide); a route of ours has one host and one path. So a rule becomes a
candidate for each host and path; the pair `/a`, `/a/*` is one prefix. What cannot be said raises Unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from apps.adoption.candidates import Candidate, Unsaid
from apps.compiler.grammar import METHODS, REDIRECT_CODES

Block = Mapping[str, Any]
Headers = tuple[tuple[tuple[str, str], ...], ...]
WILD = ("*", "?")
OWN = {"Protocol": "#{protocol}", "Host": "#{host}", "Port": "#{port}", "Path": "/#{path}", "Query": "#{query}"}
DEFAULT_PORTS = {"HTTP": "80", "HTTPS": "443"}
MOST_POOLS = 8
UNSAYABLE = {
    "query-string": "It matches the query, but routes match only host, path, method and headers.",
    "source-ip": "It matches the client's address, but client networks apply to a whole stack.",
}


def hosts_of(rule: Block) -> list[str]:
    """The values of its host condition, lower case; empty where it takes every host."""
    found = {value.lower() for value in _values(rule, "host-header", "HostHeaderConfig")}
    return [] if "*" in found else sorted(found)


def candidates_of(rule: Block, action: tuple[Any, ...]) -> tuple[list[Candidate], str]:
    """What the rule takes on each of its hosts, and what is lost with it, as a sentence. Raises Unsaid."""
    for condition in rule.get("Conditions", ()):
        if condition["Field"] in UNSAYABLE:
            raise Unsaid(UNSAYABLE[condition["Field"]])
        if any(key.startswith("Regex") and condition[key] for key in condition):
            raise Unsaid("It uses a regular expression, but routes match only exact values.")
    methods = tuple(sorted(_values(rule, "http-request-method", "HttpRequestMethodConfig")))
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise Unsaid(f"It matches the method {unknown[0]}, but routes support only {', '.join(sorted(METHODS))}.")
    paths, loss = _paths(_values(rule, "path-pattern", "PathPatternConfig"))
    found = [
        Candidate(path, exact, methods, headers, action, None)
        for (path, exact), headers in product(paths, list(_headers(rule)))
    ]
    return found, loss


def _values(rule: Block, field: str, config: str) -> list[str]:
    """The values of every condition on this field; two such conditions would both have to hold."""
    found = [condition for condition in rule.get("Conditions", ()) if condition["Field"] == field]
    if len(found) > 1:
        raise Unsaid(f"It has several conditions on {field}, but a route has only one.")
    return (
        [str(each) for each in (found[0].get(config) or {}).get("Values") or found[0].get("Values", ())]
        if found
        else []
    )


def _paths(patterns: list[str]) -> tuple[list[tuple[str, bool]], str]:
    """Paths with whether they are exact, and what is lost. `/a` with `/a/*` is the prefix `/a`."""
    if not patterns:
        return [("/", False)], ""
    given, found, losses = set(patterns), [], []
    for pattern in sorted(given):
        body = pattern.removesuffix("*")
        if any(wild in body for wild in WILD) or (pattern.endswith("*") and not body.endswith("/")):
            raise Unsaid(
                f"It matches the pattern {pattern}, but routes match only whole paths and prefixes of whole segments."
            )
        if pattern.endswith("*"):
            path = body.rstrip("/") or "/"
            if path != "/" and path not in given:
                losses.append(f"{path} itself also matches.")
            found.append((path, False))
        elif f"{pattern.rstrip('/')}/*" not in given:
            found.append((pattern, True))
    return found, " ".join(losses)


def _headers(rule: Block) -> Iterator[Headers]:
    """Conditions on headers, one alternative each."""
    conditions = [each["HttpHeaderConfig"] for each in rule.get("Conditions", ()) if each["Field"] == "http-header"]
    alternatives = [[_header(each["HttpHeaderName"], value) for value in each["Values"]] for each in conditions]
    for chosen in product(*alternatives):
        yield tuple(sorted(chosen))


def _header(name: str, value: str) -> tuple[tuple[str, str], ...]:
    if value == "*":
        return (("match", "present"), ("name", name))
    if any(wild in value for wild in WILD):
        raise Unsaid(
            f"It compares header {name} with the pattern {value}, but routes test only the exact value or presence."
        )
    return (("match", "equals"), ("name", name), ("value", value))


def action_of(actions: list[Block]) -> tuple[Any, ...]:
    """What is done: `("pools", (arn, weight), …)`, `("redirect", …)`, `("fixed", …)`. Raises Unsaid."""
    for action in actions:
        if action["Type"].startswith(("authenticate", "jwt")):
            raise Unsaid("It requires people to sign in. Without that, anybody could reach its servers.")
    last = max(actions, key=lambda action: int(action.get("Order") or 0))
    if last["Type"] == "forward":
        return ("pools", *_shares(last))
    if last["Type"] == "redirect":
        return ("redirect", *_redirect(last["RedirectConfig"]))
    if last["Type"] == "fixed-response":
        return ("fixed", *_fixed(last["FixedResponseConfig"]))
    raise Unsaid(f"Its action is {last['Type']}, which Spillway does not support.")


def _shares(action: Block) -> list[tuple[str, int]]:
    groups = (action.get("ForwardConfig") or {}).get("TargetGroups") or [{"TargetGroupArn": action["TargetGroupArn"]}]
    alone = len(groups) == 1
    found = [(each["TargetGroupArn"], 1 if alone else int(each.get("Weight", 1))) for each in groups]
    if len(found) > MOST_POOLS:
        raise Unsaid(f"It divides requests among {len(found)} groups, but a route has at most {MOST_POOLS} pools.")
    return found


def _redirect(config: Block) -> Iterator[tuple[str, Any]]:
    words = {name: str(config.get(name) or usual) for name, usual in OWN.items()}
    code = int(str(config["StatusCode"]).removeprefix("HTTP_"))
    if code not in REDIRECT_CODES:
        raise Unsaid(f"It answers {code}, which no redirect here does.")
    yield "code", code
    if words["Protocol"] != OWN["Protocol"]:
        yield "scheme", words["Protocol"].lower()
    if words["Host"] != OWN["Host"]:
        yield "host", _plain(words["Host"], "host")
    usual = (OWN["Port"], DEFAULT_PORTS.get(words["Protocol"], ""))
    if words["Port"] not in usual and not (words["Protocol"] == OWN["Protocol"] and words["Port"] in ("80", "443")):
        yield "port", int(words["Port"])
    if words["Path"] != OWN["Path"]:
        yield "path", _plain(words["Path"], "path")
    query = str(config.get("Query", OWN["Query"]))
    added = query.removeprefix(OWN["Query"]).removeprefix("&")
    if "#{" in added:
        raise Unsaid("It makes the query of parts of the old one, but redirects only keep it, drop it or add to it.")
    yield "keep_query", query.startswith(OWN["Query"])
    if added:
        yield "query", added


def _plain(text: str, what: str) -> str:
    if "#{" in text:
        raise Unsaid(f"It makes the {what} of parts of the old one, but redirects only keep it or replace it.")
    return text


def _fixed(config: Block) -> Iterator[tuple[str, Any]]:
    yield "status", int(config["StatusCode"])
    if config.get("ContentType"):
        yield "content_type", f"{config['ContentType']}; charset=utf-8"
    if config.get("MessageBody"):
        yield "body", config["MessageBody"]
