"""What clients of a port of tcp send first, as conditions of haproxy.cfg ask for it."""

from __future__ import annotations

import re

from apps.compiler.model.listener_options import ClientProtocol
from apps.importing.haproxy.criteria.asked import Asked, argument

_FIRST_BYTES = {b"SSH-".hex(): ClientProtocol.SSH, "05": ClientProtocol.SOCKS5, "03": ClientProtocol.RDP}
_HEADERS = frozenset({"hdr", "req.hdr", "req.fhdr", "req_hdr"})
_PATHS = frozenset({"path", "pathq", "url", "uri", "capture.req.uri"})
# Every path is one of these.
_ANY_PATH = re.compile(r"\^?\\?/(?:\(?\.[*+]\)?)?\$?")


def of_payload(asked: Asked) -> str:
    """The protocol of which these are the first bytes; empty for others."""
    begin = [each if asked.match == "bin" else each.encode().hex() for each in asked.values]
    if asked.sample.args[:1] != ("0",) or asked.match not in ("bin", "str", "beg", "sub", "") or not begin:
        return ""
    if len(begin) == 1 and begin[0] in _FIRST_BYTES:
        return _FIRST_BYTES[begin[0]]
    is_ssh = all(each.lower().startswith(b"SSH-".hex()) for each in begin)
    is_rdp = all(each.startswith("0300") for each in begin) and asked.match == "bin"
    return ClientProtocol.SSH if is_ssh else ClientProtocol.RDP if is_rdp else ""


def of_request(asked: Asked) -> str:
    """The protocol of a client whose first request is asked for: any request, or one for a WebSocket; else empty."""
    fetch, match = asked.sample.fetch, asked.match or "str"
    values = {value.lower() for value in asked.values}
    if fetch in _HEADERS and match in ("str", "sub", "beg"):
        upgrades = (argument(asked).lower(), values) in (("upgrade", {"websocket"}), ("connection", {"upgrade"}))
        return ClientProtocol.WEBSOCKET if upgrades else ""
    is_any = (match == "beg" and "/" in values) or (match == "reg" and any(map(_ANY_PATH.fullmatch, values)))
    return ClientProtocol.HTTP if fetch in _PATHS and is_any and not asked.sample.converters else ""
