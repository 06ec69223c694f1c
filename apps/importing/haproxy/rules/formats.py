"""Log-format strings of haproxy.cfg, as texts of headers and as targets of redirects."""

from __future__ import annotations

import re
from functools import partial

from apps.compiler.grammar import GrammarError
from apps.compiler.header_text import begins_variable, header_text, of_request, request_text, written
from apps.importing.haproxy.criteria.samples import parse_sample
from apps.importing.logic.targets import HOST, PATH, QUERY, Target

_PART = re.compile(r"%(?:\{[^}]*\})?(?:\[((?:[^\[\]]|\[[^\]]*\])*)\]|([A-Za-z]{1,3})|(%))")
_VARIABLES = {
    **dict.fromkeys(("src", "%ci", "var(txn.src)", "src,ipmask(32)"), "client_address"),
    **dict.fromkeys(("method", "%HM", "capture.req.method"), "method"),
    **dict.fromkeys(("path", "%HP"), "path"),
    **dict.fromkeys(("capture.req.uri", "url", "pathq", "%HU", "%HPO"), "uri"),
    **dict.fromkeys(("unique-id", "%ID", "uuid()", "uuid", "rand", "uuid(4)"), "request_id"),
    **dict.fromkeys(("srv_name", "%s"), "server"),
    **dict.fromkeys(("dst_port", "%fp"), "port"),
    "ssl_fc,iif(https,http)": "scheme",
    **dict.fromkeys(("ssl_fc_protocol", "%sslv"), "tls_version"),
    **dict.fromkeys(("ssl_fc_cipher", "%sslc"), "tls_cipher"),
}
_HOST = re.compile(r"(?:req\.)?f?hdr\([Hh]ost\)(?:,lower|,host_only|,field\(1,:\))*")
_HEADER = re.compile(r"((?:req\.)?f?|capture\.req\.)hdr\(([A-Za-z](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?)\)")
_URI = ("capture.req.uri", "url", "pathq", "uri")
_LOCATION = re.compile(r"(?:(https?)://([^/\x03?:]*)(?::([0-9]+))?)?([^?\x04]*)(\x04?)(?:\?(.*))?", re.DOTALL)


def as_header_text(text: str, *, of_response: bool = False) -> str | None:
    """The value of a header with our variables; None where it says what ours cannot.

    A response no longer has the headers of its request but those that were captured.
    """
    if begins_variable(_PART.sub("", text)):
        return None
    found = _PART.sub(partial(_variable, of_response), text)
    try:
        return header_text(found) if of_response else request_text(found)
    except GrammarError:
        return None


def _variable(of_response: bool, found: re.Match[str]) -> str:
    if found[3]:
        return "%"
    expression = found[1] if found[1] is not None else f"%{found[2]}"
    if expression.startswith("str(") and expression.endswith(")"):
        return expression[4:-1]
    name = "host" if _HOST.fullmatch(expression.strip()) else _VARIABLES.get(expression.strip())
    header = _HEADER.fullmatch(expression.strip())
    if name is None and header is not None and (header[1] == "capture.req." or not of_response):
        name = of_request(header[2])
    return written(name or "")


def as_target(text: str, *, drop_query: bool = False) -> Target | None:
    """The target of `redirect location`; None where it is made of more than scheme, host, path and query."""
    drop: list[str] = []
    moved: list[tuple[str, str]] = []

    def part(found: re.Match[str]) -> str:
        if found[3]:
            return "%"
        expression = found[1] if found[1] is not None else f"%{found[2]}"
        return _part_of_location(expression.strip(), drop, moved)

    plain = _PART.sub(part, text)
    found = _LOCATION.fullmatch(plain)
    if "\0" in plain or found is None:
        return None
    before, mark, after = found[4].partition(PATH)
    if len(moved) > 1 or (moved and not moved[0][0]):
        return None
    strip, instead = moved[0] if moved else ("", "")
    if after or (found[6] and (QUERY in found[6] or PATH in found[6])) or (found[2] and PATH in found[2]):
        return None
    return Target(
        scheme=found[1] or "",
        host=found[2] or "",
        drop_from_host=drop[0] if drop else "",
        port=int(found[3] or 0),
        path="" if mark else found[4],
        before=before.rstrip("/") + instead if mark else "",
        strip=strip,
        keeps_path=bool(mark),
        keep_query=bool(found[5]) and not drop_query,
        query=found[6] or "",
    )


def _part_of_location(expression: str, drop: list[str], moved: list[tuple[str, str]]) -> str:
    if expression in _URI or expression == "%HU":
        return PATH + QUERY
    if expression in ("path", "%HP", "%HPO"):
        return PATH
    if expression == "query":
        return "\0"
    sample = parse_sample(expression)
    if sample and sample.fetch in (*_URI, "path") and sample.converter_names == ("regsub",):
        moved.append(_moved(sample.converters[0][1]))
        return PATH if sample.fetch == "path" else PATH + QUERY
    if sample and sample.fetch in ("hdr", "req.hdr", "req.fhdr") and [each.lower() for each in sample.args] == ["host"]:
        for name, args in sample.converters:
            cut = args[0].lstrip("^").replace("\\.", ".") if args else ""
            if (
                name == "regsub"
                and args[0].startswith("^")
                and not any(args[1:2])
                and re.fullmatch(r"[a-z0-9.-]+", cut)
            ):
                drop.append(cut)
            elif name not in ("lower", "host_only") and (name, args) != ("field", ("1", ":")):
                return "\0"
        return HOST
    return "\0"


def _moved(args: tuple[str, ...]) -> tuple[str, str]:
    """What `regsub(^/old,/new)` takes away from paths, and what takes its place; empty for other patterns."""
    expression, text = (*args, "", "")[:2]
    old = expression.removeprefix("^").replace("\\.", ".").rstrip("/")
    plain = re.fullmatch(r"(?:/[A-Za-z0-9._-]+)+", old) and re.fullmatch(r"(?:/[A-Za-z0-9._-]+)*/?", text)
    if not expression.startswith("^") or not plain or expression.endswith("/") != text.endswith("/"):
        return "", ""
    return old, text.rstrip("/")
