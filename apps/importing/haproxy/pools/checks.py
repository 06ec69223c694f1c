"""Health checks: `option httpchk` and its kin, `http-check`, `tcp-check`, and what `check` of servers says."""

from __future__ import annotations

import re
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.haproxy.pools.servers import ServerLine, common, number_of
from apps.importing.haproxy.text.durations import LONGEST_MS, milliseconds
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line

KINDS = {
    "mysql-check": "mysql",
    "pgsql-check": "postgresql",
    "redis-check": "redis",
    "smtpchk": "smtp",
    "ldap-check": "ldap",
    "tcp-check": "tcp",
    "httpchk": "http",
    "ssl-hello-chk": "tcp",
}
_HEADER = re.compile(r"(?:\r\n|\\r\\n|\n)([A-Za-z0-9-]+):\s*([^\r\n\\]*)")


def health_check(context: Context, section: Section, servers: list[ServerLine], protocol: str) -> dict[str, Any] | None:
    """The check of a pool, None where no server is checked."""
    checked = [each for each in servers if "check" in each.options and "no-check" not in each.options]
    option = _option(section)
    lines = [*section.each("http-check"), *section.each("tcp-check")]
    if not checked:
        for line in [*([option] if option else []), *lines]:
            context.ledger.differs(line, "No server is checked, so this says nothing.")
        return None
    check: dict[str, Any] = _times(context, section, checked)
    _say_tls(context, checked)
    if option is not None:
        _of_option(context, option, check, protocol)
    is_http = check.get("kind") == "http"
    for line in section.each("http-check"):
        _http_check(context, line, check, is_http=is_http)
    if is_http and "path" in check and not check.keys() & {"expect_status", "expect_statuses"}:
        check["expect_statuses"] = [HEALTHY]
    for line in section.each("tcp-check"):
        _tcp_check(context, line, check, protocol)
    check.pop("connected", None)
    if protocol == "tcp":
        check.setdefault("kind", "tcp")
    return check


def _say_tls(context: Context, servers: list[ServerLine]) -> None:
    """Checks speak TLS where requests do; those of another port do not, in HAProxy either unless it is said."""
    for each in servers:
        options = each.options
        speaks = "ssl" in options and not options.keys() & {"port", "addr"}
        wanted = "check-ssl" in options or (speaks and "no-check-ssl" not in options)
        if speaks != wanted:
            does = "speak TLS" if speaks else "speak no TLS"
            context.ledger.differs(each.line, f"Checks {does} here.")


MOST_CHECKS = 100
# What a server answers that is up, where nothing else is expected; a pool expects 200 alone.
HEALTHY = "200-399"


def _option(section: Section) -> Line | None:
    found = None
    for line in section.all_lines():
        if line.keyword == "option" and len(line.words) > 1 and line.words[1] in (*KINDS, "external-check"):
            found = line
    return found


def _times(context: Context, section: Section, servers: list[ServerLine]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    interval = number_of(servers, "inter")
    if interval:
        found["interval_ms"] = interval
    timeout = section.last("timeout", "check")
    if timeout is not None:
        context.ledger.mapped(timeout)
    time = milliseconds(timeout.words[2]) if timeout is not None and len(timeout.words) > 2 else None
    if time or interval:
        found["timeout_ms"] = min(time or interval or 2000, LONGEST_MS)
    port = common(servers, "port")
    if port and port.isdecimal():
        found["port"] = int(port)
    for name in ("rise", "fall"):
        text = common(servers, name)
        if text and text.isdecimal():
            found[name] = min(MOST_CHECKS, max(1, int(text)))
        for each in servers:
            if each.options.get(name, "").isdecimal() and int(each.options[name]) > MOST_CHECKS:
                context.ledger.differs(each.line, f"{MOST_CHECKS} checks are the most for {name}.")
    return found


def _of_option(context: Context, line: Line, check: dict[str, Any], protocol: str) -> None:
    kind, words = line.words[1], line.words[2:]
    context.ledger.mapped(line)
    if kind == "external-check":
        context.ledger.differs(line, "Nodes start no programs; servers are checked by a connection instead.")
        return
    if kind == "ssl-hello-chk":
        context.ledger.differs(line, "A connection is made, without the beginning of TLS.")
    ours = KINDS[kind]
    if ours == "http":
        check["kind"] = "http"
        _request(context, line, words, check)
        return
    if protocol != "tcp":
        context.ledger.differs(line, f"An http pool is checked by HTTP or a connection, not by {ours}.")
        return
    if ours in ("mysql", "postgresql"):
        if "user" not in words[:-1]:
            context.ledger.differs(line, f"A connection is made: a check by {ours} needs a user that may sign in.")
            return
        check["user"] = words[words.index("user") + 1]
    check["kind"] = ours
    if ours == "smtp" and len(words) > 1 and "." in words[1]:
        check["host"] = words[1].lower()


def _request(context: Context, line: Line, words: tuple[str, ...], check: dict[str, Any]) -> None:
    """`option httpchk [METHOD] [PATH] [HTTP/1.1\\r\\nHost: name]`."""
    parts = [part for word in words for part in word.split(" ") if part]
    method, path = "OPTIONS", "/"
    if len(parts) == 1:
        path = parts[0]
    elif parts:
        method, path = parts[0], parts[1]
    _set(context, line, check, method=method, path=path)
    for name, value in _HEADER.findall(" ".join(words)):
        _header(context, line, check, name, value.strip())


def _set(context: Context, line: Line, check: dict[str, Any], **values: str) -> None:
    """Fields that pass their grammar; of others it is said what is wrong."""
    readers = {"method": grammar.method, "path": grammar.check_path, "host": grammar.server_host}
    for name, value in values.items():
        try:
            check[name] = readers[name](value)
        except GrammarError as error:
            context.ledger.differs(line, f"{name} of the check: {error.message}")


def _http_check(context: Context, line: Line, check: dict[str, Any], *, is_http: bool) -> None:
    words = line.words[1:]
    ledger = context.ledger
    if not is_http or not words:
        ledger.differs(line, "Servers are not checked by HTTP, so this says nothing.")
    elif words[0] == "expect":
        _expect(context, line, [word for word in words[1:] if not word.startswith(("min-recv", "comment"))], check)
    elif words[0] == "send":
        _send(context, line, words[1:], check)
    elif words[0] == "disable-on-404":
        ledger.differs(line, "A server is taken out by its state, not by an answer of 404.")
    elif words[0] == "connect":
        _connect(context, line, words[1:], check)
    elif words[0] in ("comment", "send-state"):
        ledger.mapped(line)
    else:
        ledger.differs(line, "Checks send one request and look at its answer.")


def _connect(context: Context, line: Line, words: tuple[str, ...], check: dict[str, Any]) -> None:
    """Where the check connects: its port; the rest is that of requests."""
    context.ledger.mapped(line)
    if "port" in words[:-1] and (port := words[words.index("port") + 1]).isdecimal():
        if "connected" in check:
            context.ledger.differs(line, "A check makes one connection.")
        else:
            check["port"] = int(port)
    check["connected"] = True
    for word in ("ssl", "sni", "alpn", "proto", "send-proxy", "via-socks4", "addr"):
        if word in words:
            context.ledger.differs(line, f"Checks connect as requests do, whatever {word} says here.")


def _expect(context: Context, line: Line, words: list[str], check: dict[str, Any]) -> None:
    ledger = context.ledger
    check.setdefault("path", "/")
    kind, value = (words[0], " ".join(words[1:])) if len(words) > 1 else ("", "")
    if kind == "status" and re.fullmatch(r"[1-5][0-9]{2}(?:-[1-5][0-9]{2})?(?:,[1-5][0-9-]{2,6})*", value):
        statuses = value.split(",")
        if len(statuses) == 1 and value.isdecimal() and int(value) >= 200:
            check["expect_status"] = int(value)
        else:
            check["expect_statuses"] = statuses[:8]
        ledger.mapped(line)
    elif kind == "rstatus" and (ranges := _ranges(value)):
        check["expect_statuses"] = ranges
        ledger.mapped(line)
    elif kind == "string" and re.fullmatch(r"[\x20-\x7e]{1,512}", value):
        check["expect_body"] = value
        check["expect_statuses"] = ["100-599"]
        ledger.mapped(line)
    else:
        check["expect_statuses"] = [HEALTHY]
        ledger.differs(
            line, "Checks expect statuses or a text, not a pattern and not the opposite; 200 to 399 is expected."
        )


def _ranges(expression: str) -> list[str]:
    """`^[23]..`, `(2|3)[0-9][0-9]`, `^2[0-9]{2}` as ranges of statuses."""
    if found := re.fullmatch(
        r"\^?[\[(]([1-5|,]+)[\])](?:\.\.|\.\*|\[0-9\]\[0-9\]|\\d\\d|\\d\{2\}|\[0-9\]\{2\}|\d{2})?\$?", expression
    ):
        return [f"{digit}00-{digit}99" for digit in found[1] if digit.isdecimal()]
    if found := re.fullmatch(r"\^?([1-5])(?:\.\.|\.\*|\[0-9\]\[0-9\]|\\d\\d|\\d\{2\}|\[0-9\]\{2\})\$?", expression):
        return [f"{found[1]}00-{found[1]}99"]
    found = re.fullmatch(r"\^?\(?([1-5][0-9]{2}(?:\|[1-5][0-9]{2})*)\)?\$?", expression)
    return found[1].split("|")[:8] if found else []


def _send(context: Context, line: Line, words: tuple[str, ...], check: dict[str, Any]) -> None:
    context.ledger.mapped(line)
    at = 0
    while at < len(words):
        word, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        at += 2
        if word == "meth":
            _set(context, line, check, method=value)
        elif word == "uri":
            _set(context, line, check, path=value)
        elif word == "ver":
            continue
        elif word == "hdr":
            name, text = value, words[at] if at < len(words) else ""
            at += 1
            _header(context, line, check, name, text)
        else:
            context.ledger.differs(line, f"Checks send no {word} made of variables.")


def _header(context: Context, line: Line, check: dict[str, Any], name: str, text: str) -> None:
    if name.lower() == "host":
        _set(context, line, check, host=text.lower())
        return
    try:
        check.setdefault("headers", {})[grammar.header_name(name)] = grammar.header_value(text)
        check.setdefault("path", "/")
    except GrammarError as error:
        context.ledger.differs(line, error.message)


def _tcp_check(context: Context, line: Line, check: dict[str, Any], protocol: str) -> None:
    """One text that is sent, and one that is expected."""
    words = line.words[1:]
    if protocol == "tcp" and words[:1] in (("send",), ("expect",)) and check.get("kind", "tcp") == "tcp":
        field = "send" if words[0] == "send" else "expect"
        value = words[-1].replace("\r\n", "\n").rstrip("\n")
        plain = words[0] == "send" or (len(words) > 2 and words[1] == "string")
        if field not in check and plain and re.fullmatch(r"[\n\x20-\x7e]{1,512}", value):
            check["kind"] = "tcp"
            check[field] = value
            context.ledger.mapped(line)
            return
    if words[:1] == ("connect",):
        _connect(context, line, words[1:], check)
        return
    if words[:1] == ("comment",):
        context.ledger.mapped(line)
        return
    context.ledger.differs(line, "Checks send one text and expect one text.")
