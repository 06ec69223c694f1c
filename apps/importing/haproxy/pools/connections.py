"""What servers of a backend say of the way to them: TLS, connections, retries."""

from __future__ import annotations

import re
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.servers import MOST_RETRIES
from apps.importing.haproxy.pools.servers import ServerLine, common
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context

ON = {
    "conn-failure": "connect",
    "empty-response": "no_answer",
    "response-timeout": "timeout",
    "junk-response": "junk",
    "0rtt-rejected": "",
    **{status: status for status in ("404", "408", "425", "500", "501", "502", "503", "504")},
}
OPTIONS = {
    "redispatch": "",
    "allbackups": "",
    "prefer-last-server": "Each request of a connection is balanced by itself.",
    "abortonclose": "Requests whose client left while they waited are sent to servers all the same.",
}
_FIXED_NAME = re.compile(r"str\(([^)]*)\)")


def server_tls(context: Context, servers: list[ServerLine], protocol: str) -> dict[str, Any]:
    """TLS to servers; whose certificates are not verified is said, since it is not today either."""
    encrypted = [each for each in servers if "ssl" in each.options]
    if not encrypted:
        return {}
    verify, authority = common(encrypted, "verify"), common(encrypted, "ca-file")
    found: dict[str, Any] = {"verify": "none" if verify == "none" else "system"}
    named = _FIXED_NAME.fullmatch(common(encrypted, "sni") or "")
    name = _host(named[1] if named else common(encrypted, "verifyhost") or "")
    if name:
        found["server_name"] = name
    if not name:
        _say_name(context, encrypted, protocol)
    if verify != "none" and authority and not authority.startswith("@system"):
        text = context.files.text(authority)
        if text and "BEGIN CERTIFICATE" in text:
            found |= {"verify": "ca", "ca": _blocks(text)}
        else:
            _need_authority(context, encrypted, authority)
            found["verify"] = "none"
    elif verify is None:
        found["verify"] = "none" if not authority else found["verify"]
    if protocol == "tcp" and found["verify"] != "none" and "server_name" not in found:
        found["verify"] = "none"
        for each in encrypted:
            context.ledger.differs(
                each.line, "The names of the servers are not known, so certificates are not verified."
            )
    if client := common(encrypted, "crt"):
        _client_certificate(context, encrypted, client, found)
    return {"server_tls": found}


def _say_name(context: Context, servers: list[ServerLine], protocol: str) -> None:
    """The TLS name that servers are sent, where it is made of another part of the request than its host."""
    sent = common(servers, "sni") or ""
    if sent and (protocol == "tcp" or "host" not in sent.lower()):
        word = "no TLS name" if protocol == "tcp" else "the host as the TLS name"
        for each in servers:
            context.ledger.differs(each.line, f"Servers are sent {word}.")


def _need_authority(context: Context, servers: list[ServerLine], path: str) -> None:
    for each in servers:
        context.ledger.differs(each.line, f"The file {path} was not given, so certificates are not verified.")
    context.need(f"The file {path}.")


def _client_certificate(context: Context, servers: list[ServerLine], path: str, found: dict[str, Any]) -> None:
    if path in context.options.certificates:
        found["client_certificate"] = context.options.certificates[path]
        return
    for each in servers:
        context.ledger.differs(each.line, f"Say which certificate {path} is: --certificate {path}=NAME.")
    context.need(f"The certificate that servers are shown (--certificate {path}=NAME).")


def _blocks(text: str) -> str:
    found = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", text, re.DOTALL)
    return "".join(block if block.endswith("\n") else block + "\n" for block in found)


def _host(text: str) -> str:
    try:
        return grammar.server_host(text.lower())
    except GrammarError:
        return ""


def connections(context: Context, section: Section, servers: list[ServerLine], protocol: str) -> dict[str, Any]:
    """`maxconn`, `minconn`, `maxqueue`, `fullconn`, and how connections are used again."""
    found: dict[str, Any] = {}
    numbers = {
        name: int(text) for name in ("maxconn", "minconn", "maxqueue")
        if (text := common(servers, name)) and text.isdecimal() and int(text) > 0
    }  # fmt: skip
    full = section.last("fullconn")
    if "maxconn" in numbers:
        bounds: dict[str, int] = {"max_per_server": min(numbers["maxconn"], 1_000_000)}
        if "minconn" in numbers and numbers["minconn"] <= bounds["max_per_server"]:
            bounds["min_per_server"] = numbers["minconn"]
            if full is not None and full.words[1:2] and full.words[1].isdecimal():
                bounds["full_at"] = max(1, int(full.words[1]))
        if "maxqueue" in numbers:
            bounds["max_queue"] = numbers["maxqueue"]
        found["connections"] = bounds
    if full is not None:
        context.ledger.mapped(full)
    reuse = section.last("http-reuse")
    if reuse is not None:
        context.ledger.mapped(reuse)
        kinds = {"never": "never", "always": "always", "aggressive": "always"}
        kind = kinds.get(reuse.words[1]) if reuse.words[1:] else None
        found |= {"connection_reuse": kind} if kind and protocol == "http" else {}
    return found


def retries(context: Context, section: Section) -> dict[str, Any]:
    """`retries` and `retry-on`; `option redispatch` is what nodes do anyway."""
    count, on = section.last("retries"), section.last("retry-on")
    found: dict[str, Any] = {}
    if count is not None and count.words[1:] and count.words[1].isdecimal():
        context.ledger.mapped(count)
        found["attempts"] = min(MOST_RETRIES, int(count.words[1]))
        if int(count.words[1]) > MOST_RETRIES:
            context.ledger.differs(count, "A request is retried ten times at most.")
        found["on"] = ["connect"]
    if on is not None:
        context.ledger.mapped(on)
        words = ["conn-failure", "empty-response", "junk-response", "response-timeout"]
        words = list(on.words[1:]) if "all-retryable-errors" not in on.words else words
        known = [ON[word] for word in words if ON.get(word)]
        found["on"] = known or ["connect"]
        if len(known) < len(words):
            context.ledger.differs(on, "Not each of these is a reason to retry here.")
    for option, said in OPTIONS.items():
        for line in section.each("option", option) if section.last("option", option) is not None else ():
            context.ledger.differs(line, said) if said else context.ledger.mapped(line)
    return {"retries": found} if found else {}
