"""Which formats of configuration can be imported, how a file of each is recognised, and who reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from apps.importing.caddy.reading import read_caddy
from apps.importing.contract import Import
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.haproxy.text.sections import KINDS
from apps.importing.kubernetes.reading import read_kubernetes
from apps.importing.nginx.reading import read_nginx
from apps.importing.npm.reading import read_npm
from apps.importing.options import ImportOptions

Reader = Callable[[str, Mapping[str, str], ImportOptions], Import]


@dataclass(frozen=True, slots=True)
class Format:
    """`content` is found in its texts alone, `patterns` name its main file; `file` is what people call it.

    `is_several`: no file names another one, so all that are given are read. `everywhere` are sentences about what
    differs whatever the file says.
    """

    name: str
    title: str
    file: str
    patterns: tuple[str, ...]
    content: re.Pattern[str]
    read: Reader
    is_several: bool = False
    everywhere: tuple[str, ...] = ()


# Of any format: what Spillway does with each request.
CLIENT_FACTS = (
    "Spillway sets X-Forwarded-For, -Proto, -Port and -Host, X-Real-IP and X-Request-Id; what clients send in them "
    "counts only from proxies that a listener trusts."
)
UNDERSCORES = "A request with an underscore in the name of a header is answered 403."
REDIRECTS = "Redirects of servers reach clients as they are; nginx puts its own address into some of them."
FAILED_SERVERS = (
    "A server that fails is left out only where max_fails or fail_timeout says so; nginx leaves each out for 10 s."
)
PATHS = "Paths are compared as clients write them, without resolving %2F, // and .. first."

# Content is looked for in this order: `listen 80;` of nginx looks like a section of HAProxy, and a row may hold it.
FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format(
            "kubernetes",
            "Kubernetes",
            "manifests in YAML",
            ("*.yaml", "*.yml"),
            re.compile(r"^[ \t]*(?:- )?[\"']?apiVersion[\"']?[ \t]*:", re.MULTILINE),
            read_kubernetes,
            is_several=True,
            everywhere=(CLIENT_FACTS, UNDERSCORES, PATHS),
        ),
        Format(
            "caddy",
            "Caddy",
            "the JSON of Caddy (caddy adapt)",
            ("caddy.json", "Caddyfile"),
            re.compile(r"\"apps\"\s*:\s*\{\s*\"(?:http|tls|pki|layer4)\"\s*:"),
            read_caddy,
            everywhere=(
                CLIENT_FACTS,
                UNDERSCORES,
                PATHS,
                "The case of paths counts; Caddy ignores it.",
                "Clients are not offered HTTP/3 before a listener says so.",
            ),
        ),
        Format(
            "nginx-proxy-manager",
            "Nginx Proxy Manager",
            "a dump of database.sqlite",
            ("database.sqlite", "*.sql"),
            re.compile(r"^CREATE TABLE [^\n]{0,40}\bproxy_host\b", re.MULTILINE),
            read_npm,
            everywhere=(CLIENT_FACTS, UNDERSCORES, PATHS, REDIRECTS, FAILED_SERVERS),
        ),
        Format(
            "nginx",
            "nginx",
            "nginx.conf",
            ("nginx.conf",),
            re.compile(r"^[ \t]*(?:http|stream|events|server|upstream[ \t]+\S+)[ \t\r\n]*\{", re.MULTILINE),
            read_nginx,
            everywhere=(
                CLIENT_FACTS,
                UNDERSCORES,
                PATHS,
                REDIRECTS,
                FAILED_SERVERS,
                "Bodies may have any length where client_max_body_size says nothing; nginx takes 1 MiB.",
            ),
        ),
        Format(
            "haproxy",
            "HAProxy",
            "haproxy.cfg",
            ("*.cfg",),
            re.compile(rf"^[ \t]*(?:{'|'.join(sorted(KINDS))})(?=[ \t]+[\w#]|[ \t]*$)", re.MULTILINE),
            read_haproxy,
            everywhere=(
                CLIENT_FACTS,
                UNDERSCORES,
                "Where the file says no timeout, that of Spillway counts; HAProxy waits without end.",
            ),
        ),
    )
}


def files_in_words() -> str:
    """What people call the files that can be read: `nginx.conf or haproxy.cfg`."""
    *others, last = (each.file for each in FORMATS.values())
    return f"{', '.join(others)} or {last}"


def recognised(name: str, text: str) -> Format | None:
    """The format of a file, by what it says, or else by its name."""
    by_content = (each for each in FORMATS.values() if each.content.search(text))
    return next(by_content, None) or _by_name(name)


def main_files(files: Mapping[str, str]) -> list[str]:
    """Which of several files may be the configuration: by name, else by content, else any."""
    named = [name for name in files if _by_name(name)]
    return named or [name for name, text in files.items() if recognised(name, text)] or list(files)


def configuration_of(files: Mapping[str, str], form: Format | None) -> str:
    """The name of the configuration; the first of several that are read together, empty where it is not certain."""
    found = sorted(main_files(files))
    forms = {(form or recognised(name, files[name])) for name in found}
    together = len(forms) == 1 and all(each is not None and each.is_several for each in forms)
    return found[0] if len(found) == 1 or (found and together) else ""


def divided(form: Format, name: str, files: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """What a reader gets: the text of the configuration, and what lies beside it. Several that are read have names."""
    if form.is_several and len(files) > 1:
        return "", dict(files)
    return files[name], {each: text for each, text in files.items() if each != name}


def _by_name(name: str) -> Format | None:
    last = PurePosixPath(name).name
    return next((each for each in FORMATS.values() if any(fnmatch(last, one) for one in each.patterns)), None)


def not_recognised(name: str) -> str:
    """What to do where nobody knows which format a file has."""
    files = ", ".join(f"{each.name} ({each.file})" for each in FORMATS.values())
    return f"{name} looks like none of the formats that are read. Say which it is: {files}."
