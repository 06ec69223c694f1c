"""What an Application Load Balancer does with a request, by the listener and rules that were rendered for it.

Written from AWS's documentation alone, without a line of the renderer:

* https://docs.aws.amazon.com/elasticloadbalancing/latest/application/listener-rules.html: rules from the lowest number
  to the highest, the first whose conditions all hold acts, the default action last; priorities are 1 to 50 000, each
  once.
* https://docs.aws.amazon.com/elasticloadbalancing/latest/application/rule-condition-types.html: one condition each of
  host-header, http-request-method, path-pattern, source-ip, any number of http-header and query-string; at most 3
  values in a condition, 5 in a
  rule, 5 wildcards in a rule.
* https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/ (RuleCondition, HostHeaderConditionConfig,
  HttpHeaderConditionConfig, HttpRequestMethodConditionConfig, PathPatternConditionConfig): `*` is any number of
  characters, `?` exactly one; hosts and header values without regard to case, paths and methods with it; at most 128
  characters (method and header name 40); letters alone after a host's last dot. A header that is sent twice is searched
  in order.
* Same place, RedirectActionConfig (`#{host}` and the others; not from https to http; one of protocol, host, port, path
  must change), FixedResponseActionConfig, TargetGroupTuple (weights 0 to 999, their part of the sum).

Not documented: whether a port in the Host header is left out of the comparison. Here it is compared as it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import parse_qsl

from apps.compiler.questions.trace import Question
from apps.compiler.targets.terraform.document import StackDocument

Block = Mapping[str, Any]
VALUES_PER_CONDITION, VALUES_PER_RULE, WILDCARDS_PER_RULE, LONGEST = 3, 5, 5, 128
SINGLE = ("host_header", "path_pattern", "http_request_method", "source_ip")
PATH_SIGNS = re.compile(r"[A-Za-z0-9_.$/~\"'@:+&*?-]+")
HOST_SIGNS = re.compile(r"[A-Za-z0-9*?.-]+\.[A-Za-z*?]+")
CONTENT_TYPES = {"text/plain", "text/css", "text/html", "application/javascript", "application/json"}
DEFAULT_PORTS = {"http": "80", "https": "443"}
KEEPS = {"protocol": "#{protocol}", "host": "#{host}", "port": "#{port}", "path": "/#{path}"}
_GROUP = re.compile(r"\$\{aws_lb_target_group\.([A-Za-z0-9_]+)\.arn\}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens: `shares` are parts by the backend that a target group is tagged with, or `status` is answered."""

    shares: tuple[tuple[str, float], ...] = ()
    path: str = ""
    status: int | None = None
    location: str | None = None
    body: str = ""


def evaluate(document: StackDocument, listener: str, question: Question) -> Outcome:
    """What the listener (`lst_1`) does with the request."""
    standing = document.resources["aws_lb_listener"][listener]
    for rule in rules_of(document, listener):
        if all(_holds(condition, question) for condition in rule["condition"]):
            return _act(document, standing, rule["action"], question)
    return _act(document, standing, standing["default_action"], question)


def rules_of(document: StackDocument, listener: str) -> list[Block]:
    """The rules of a listener in the order in which they are asked; each is checked against what AWS takes."""
    arn = f"${{aws_lb_listener.{listener}.arn}}"
    every = document.resources.get("aws_lb_listener_rule", {}).values()
    rules = [rule for rule in every if rule["listener_arn"] == arn]
    numbers = [rule["priority"] for rule in rules]
    assert len(set(numbers)) == len(numbers), "two rules have one priority"
    assert all(1 <= number <= 50_000 for number in numbers), "a priority is 1 to 50 000"
    for rule in rules:
        _check_conditions(rule["condition"])
    return sorted(rules, key=lambda rule: int(rule["priority"]))


def _check_conditions(conditions: list[Block]) -> None:
    kinds = [kind for condition in conditions for kind in condition]
    assert len(kinds) == len(conditions), "a condition is of one kind"
    assert all(kinds.count(kind) <= 1 for kind in SINGLE), "a rule has one condition of each such kind"
    values = [value for condition in conditions for value in _values(condition)]
    assert 1 <= len(values) <= VALUES_PER_RULE, f"{len(values)} values in a rule"
    assert all(1 <= len(_values(each)) <= VALUES_PER_CONDITION for each in conditions), "values in a condition"
    assert sum(value.count("*") + value.count("?") for value in values) <= WILDCARDS_PER_RULE, "wildcards in a rule"
    assert all(1 <= len(value) <= LONGEST for value in values), "length of a value"
    for condition in conditions:
        for kind, [block] in condition.items():
            _check_signs(kind, block)


def _check_signs(kind: str, block: Block) -> None:
    match kind:
        case "host_header":
            assert all(HOST_SIGNS.fullmatch(value) for value in block["values"]), block
        case "path_pattern":
            assert all(PATH_SIGNS.fullmatch(value) for value in block["values"]), block
        case "http_request_method":
            assert all(re.fullmatch(r"[A-Z_-]{1,40}", value) for value in block["values"]), block
        case "source_ip":
            assert all(ip_network(value) for value in block["values"]), block
        case "query_string":
            assert 1 <= len(block["key"]) <= LONGEST, block
        case "http_header":
            assert 1 <= len(block["http_header_name"]) <= 40, block
            assert block["http_header_name"].lower() != "host", block
        case other:
            raise AssertionError(f"{other} is no condition that we write")


def _values(condition: Block) -> list[str]:
    return [value for [block] in condition.values() for value in block.get("values", [block.get("value")])]


def _holds(condition: Block, question: Question) -> bool:
    [(kind, [block])] = condition.items()
    values = _values(condition)
    match kind:
        case "source_ip":
            return bool(question.client) and any(ip_address(question.client) in ip_network(each) for each in values)
        case "query_string":
            pairs = parse_qsl(question.path.partition("?")[2].replace(";", "&"), keep_blank_values=True)
            return any(_like(values[0].lower(), value.lower()) for key, value in pairs if key == block["key"])
        case "host_header":
            return any(_like(value.lower(), question.host.lower()) for value in values)
        case "path_pattern":
            return any(_like(value, question.bare_path) for value in values)
        case "http_request_method":
            return question.method in values
        case _:
            sent = _sent(question, block["http_header_name"])
            return any(_like(value.lower(), each.lower()) for each in sent for value in values)


def _sent(question: Question, name: str) -> Iterator[str]:
    return (value for key, value in question.headers.items() if key.lower() == name.lower())


def _like(pattern: str, text: str) -> bool:
    """`*` is any number of characters, `?` exactly one."""
    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(sign, re.escape(sign)) for sign in pattern), text, re.DOTALL) is not None


def _act(document: StackDocument, standing: Block, actions: list[Block], question: Question) -> Outcome:
    [action] = actions
    match action["type"]:
        case "forward":
            return Outcome(_forward(document, action), question.path)
        case "redirect":
            [redirect] = action["redirect"]
            return _redirect(redirect, str(standing["port"]), question)
        case "fixed-response":
            [fixed] = action["fixed_response"]
            assert re.fullmatch(r"[245]\d\d", fixed["status_code"]), fixed
            assert fixed["content_type"] in CONTENT_TYPES, fixed
            assert len(fixed.get("message_body", "")) <= 1024, fixed
            return Outcome(status=int(fixed["status_code"]), body=fixed.get("message_body", ""))
        case other:
            raise AssertionError(f"{other} is no action")


def _forward(document: StackDocument, action: Block) -> tuple[tuple[str, float], ...]:
    if "target_group_arn" in action:
        targets = [{"arn": action["target_group_arn"], "weight": 1}]
    else:
        [forward] = action["forward"]
        targets = forward["target_group"]
    assert 1 <= len(targets) <= 5, "target groups in an action"
    assert all(0 <= target["weight"] <= 999 for target in targets), "weights are 0 to 999"
    whole = sum(target["weight"] for target in targets)
    return tuple(
        (_backend(document, target["arn"]), target["weight"] / whole) for target in targets if target["weight"]
    )


def _backend(document: StackDocument, arn: str) -> str:
    found = _GROUP.fullmatch(arn)
    assert found is not None, arn
    return str(document.resources["aws_lb_target_group"][found[1]]["tags"]["spillway-object"])


def _redirect(redirect: Block, port: str, question: Question) -> Outcome:
    """The Location names the port where it is not the scheme's own: AWS writes it always, which is the same address."""
    assert any(redirect[part] != kept for part, kept in KEEPS.items()), "a redirect changes something"
    scheme = _filled(redirect["protocol"], question, port).lower()
    assert not (question.scheme == "https" and scheme == "http"), "https is not redirected to http"
    host, path = (_filled(redirect[part], question, port) for part in ("host", "path"))
    own = _filled(redirect["port"], question, port)
    shown = "" if own == DEFAULT_PORTS[scheme] else f":{own}"
    query = _filled(redirect["query"], question, port)
    location = f"{scheme}://{host}{shown}{path}" + (f"?{query}" if query else "")
    return Outcome(status=int(redirect["status_code"].removeprefix("HTTP_")), location=location)


def _filled(text: str, question: Question, port: str) -> str:
    """The keyword `#{path}` has no leading slash."""
    words = {
        "#{protocol}": question.scheme.value.upper(),
        "#{host}": question.bare_host,
        "#{port}": port,
        "#{path}": question.bare_path[1:],
        "#{query}": question.path.partition("?")[2],
    }
    return re.sub(r"#\{[a-z]+\}", lambda word: words[word[0]], text)
