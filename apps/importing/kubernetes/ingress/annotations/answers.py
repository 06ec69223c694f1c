"""ingress-nginx: what clients get and may send: CORS, bodies, speed, the request log."""

from __future__ import annotations

import re
from collections.abc import Callable

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.ingress.settings import Annotations, Settings

_SIZE = re.compile(r"(\d{1,12})([kKmMgG]?)")
_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
MOST_BYTES = 1_000_000_000_000
METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
LONGEST_AGE_S = 86_400


def cors(settings: Settings, said: Annotations) -> None:
    """`enable-cors` and `cors-*`, with what the controller does where nothing is said."""
    names = ("cors-allow-origin", "cors-allow-methods", "cors-allow-headers", "cors-expose-headers",
             "cors-allow-credentials", "cors-max-age")  # fmt: skip
    if not said.flag("enable-cors"):
        said.mapped("enable-cors")
        for name in names:
            said.dead(name, "Without enable-cors these are not read.")
        return
    said.mapped("enable-cors")
    credentials = said.flag("cors-allow-credentials") is not False
    origins = _list(said, "cors-allow-origin", "*", header_text.origin)
    if "*" in origins:
        origins = ["*"]
        if credentials:
            credentials = False
            said.differs("enable-cors", "Browsers refuse credentials together with the origin *, so none are allowed.")
    said.mapped("cors-allow-credentials")
    if not origins:
        said.impossible("enable-cors", "No origin is left, so no other page may read responses.")
        return
    block: dict[str, object] = {
        "origins": origins,
        "methods": _list(said, "cors-allow-methods", METHODS, header_text.cors_method),
        "headers": _list(said, "cors-allow-headers", HEADERS, header_text.cors_header),
        "credentials": credentials,
        "max_age_s": said.number("cors-max-age", 0, LONGEST_AGE_S) or LONGEST_AGE_S,
    }
    exposed = _list(said, "cors-expose-headers", "", grammar.header_shape)
    block |= {"exposed_headers": exposed} if exposed else {}
    settings.rule("cors", **block)


def _list(said: Annotations, name: str, usual: str, read: Callable[[object], str]) -> list[str]:
    found = []
    for each in (said.text(name) or usual).split(","):
        try:
            found += [read(each.strip())] if each.strip() else []
        except GrammarError as error:
            said.impossible(name, f"{each.strip()}: {error.message}")
    said.mapped(name)
    return list(dict.fromkeys(found))


def bodies(settings: Settings, said: Annotations) -> None:
    """`proxy-body-size`."""
    text = said.text("proxy-body-size")
    match = _SIZE.fullmatch(text) if text is not None else None
    if text is None:
        return
    if match is None:
        said.impossible("proxy-body-size", "This is no size, such as 8m.")
        return
    size = int(match[1]) * _BYTES[match[2].lower()]
    said.mapped("proxy-body-size")
    if size:  # 0 is no bound
        settings.rule("body", max_bytes=min(size, MOST_BYTES))
        said.differs("proxy-body-size", "A longer body without a Content-Length gets 411.")


def logs(settings: Settings, said: Annotations) -> None:
    """`enable-access-log`."""
    if said.flag("enable-access-log") is False:
        settings.rule("log", requests="none")
    said.mapped("enable-access-log")
