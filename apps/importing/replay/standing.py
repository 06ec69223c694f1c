"""The old configuration so that it runs here: on spare ports, with stub servers, without what needs the old machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from apps.importing.files import Files
from apps.importing.haproxy.listeners.binds import binds_of
from apps.importing.haproxy.pools.backends import protocol_of
from apps.importing.haproxy.pools.servers import options_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.replay.contract import NotReplayable
from apps.importing.replay.old_lines import today
from apps.importing.verdicts import Line

KEPT_SECTIONS = frozenset({"defaults", "frontend", "backend", "listen", "userlist", "http-errors"})
DROPPED = frozenset(
    {
        *("log", "log-format", "log-format-sd", "log-tag", "stats", "unique-id-format", "unique-id-header", "source"),
        *(
            "email-alert",
            "errorfile",
            "errorfiles",
            "http-check",
            "tcp-check",
            "default-server",
            "bind-process",
            "filter",
        ),
        *(
            "description",
            "monitor",
            "persist",
            "external-check",
            "error-log-format",
            "appsession",
            "redisp",
            "redispatch",
        ),
    }
)
CHECKS = frozenset({"httpchk", "tcp-check", "mysql-check", "pgsql-check", "redis-check", "smtpchk", "ldap-check",
                    "ssl-hello-chk", "spop-check", "external-check"})  # fmt: skip
# Options that HAProxy of today no longer reads, and that make no other answer.
RETIRED = frozenset({"forceclose", "http-use-htx", "http-tunnel", "tcp-smart-accept", "tcp-smart-connect"})
SERVER_WORDS = ("weight", "cookie", "maxconn")
RENAMED = {
    "contimeout": "timeout connect",
    **dict.fromkeys(("clitimeout", "cliexp"), "timeout client"),
    **dict.fromkeys(("srvtimeout", "srvexp"), "timeout server"),
}
_COUNTED = re.compile(
    r"\b(?:sc[0-9]?_|src_)[a-z_]+|track-sc|sc-inc|nbsrv|use-service|lua\.|cache-use|cache-store|nbsrv"
)


class Standing:
    """Text of the old configuration; `ports` say where its ports are now, `stubs` which stub a backend has.

    Without `tcp` it has no sections that take or send connections that are no requests.
    """

    def __init__(
        self, context: Context, stubs: Mapping[str, int], folder: Path, spare: Iterator[int], *, tcp: bool
    ) -> None:
        self.context = context
        self.tcp = tcp
        self.stubs = stubs
        self.folder = folder
        self.spare = spare
        self.ports: dict[int, int] = {}
        self.encrypted: dict[int, bool] = {}
        self.sections: dict[int, Section] = {}
        self._paths: dict[str, str] = {}
        self._counted: set[str] = set()

    def text(self, certificate: Path) -> str:
        """The whole file. Raises NotReplayable."""
        lines = ["global", f"    stats socket {self.folder}/old.sock mode 600"]
        for section in self.context.configuration.sections:
            if section.kind in KEPT_SECTIONS and (self.tcp or not _is_of_tcp(section)):
                lines += self._section(section, certificate)
        if not self.ports:
            raise NotReplayable("No section of this file takes connections at a port.")
        return "\n".join(lines) + "\n"

    def _section(self, section: Section, certificate: Path) -> Iterator[str]:
        words = list(section.header.words[:2])
        if "from" in section.header.words:
            words += ["from", section.header.words[section.header.words.index("from") + 1]]
        yield _joined(words)
        self._counted = {line.words[1] for line in section.each("acl") if _COUNTED.search(line.text)}
        if section.kind in ("frontend", "listen"):
            yield from self._binds(section, certificate)
        for line in section.lines:
            yield from (f"    {text}" for text in self._line(section, line))

    def _binds(self, section: Section, certificate: Path) -> Iterator[str]:
        for bind in binds_of(self.context, section):
            if bind.has("accept-proxy") or bind.has("verify"):
                raise NotReplayable("Clients would have to speak the PROXY protocol or show certificates.")
            self.ports[bind.port] = next(self.spare)
            self.encrypted[bind.port] = bind.has("ssl")
            self.sections[bind.port] = section
            tls = f" ssl crt {certificate}" if bind.has("ssl") else ""
            if bind.has("ssl") and protocol_of(section) == "tcp":
                tls += "".join(f" alpn {protocols}" for protocols in bind.all("alpn"))
            yield f"    bind 127.0.0.1:{self.ports[bind.port]}{tls}"

    def _line(self, section: Section, line: Line) -> Iterator[str]:
        words = line.words
        first = words[0]
        if first in ("bind", "server-template") or first in DROPPED or self._is_counted(line):
            if first == "server-template":
                yield f"server {words[1]}1 127.0.0.1:{self._stub(section)}"
        elif first == "option" and words[1:2] and words[1] in CHECKS | RETIRED:
            return
        elif first == "server":
            yield self._server(section, words)
        elif first in RENAMED:
            yield f"{RENAMED[first]} {words[1]}"
        elif first.startswith(("req", "rsp", "block")):
            yield _joined(today(words))
        elif first == "stick-table":
            yield _joined(_without(words, "peers"))
        else:
            yield _joined([self._with_files(word) for word in self._with_ports(words)])

    def _is_counted(self, line: Line) -> bool:
        """Whether it looks at counters or at the state of servers, or calls a program."""
        words = {word.lstrip("!") for word in line.words}
        return bool(_COUNTED.search(line.text)) or bool(words & self._counted)

    def _stub(self, section: Section) -> int:
        return self.stubs.get(section.name, next(iter(self.stubs.values()), 9))

    def _server(self, section: Section, words: tuple[str, ...]) -> str:
        options = options_of(words[3:])
        kept = [part for name in SERVER_WORDS if name in options for part in (name, options[name])]
        kept += [name for name in ("backup", "disabled") if name in options]
        return _joined(["server", words[1], f"127.0.0.1:{self._stub(section)}", *kept])

    def _with_ports(self, words: tuple[str, ...]) -> list[str]:
        """Ports that a condition asks for, where they are now."""
        asked, said = False, []
        for word in words:
            asked = word == "dst_port" or (asked and word != "}")
            here = self.ports.get(int(word)) if asked and word.isdecimal() else None
            said.append(word if here is None else str(here))
        return said

    def _with_files(self, word: str) -> str:
        """Paths of files that came along, where they are now."""
        for path in self._files_in(word):
            if path not in self._paths:
                text = self.context.files.text(path)
                if text is None:
                    raise NotReplayable(f"The file {path} was not given.")
                here = self.folder / f"file-{len(self._paths)}"
                here.write_text(text)
                self._paths[path] = str(here)
            word = word.replace(path, self._paths[path])
        return word

    def _files_in(self, word: str) -> list[str]:
        files: Files = self.context.files
        found = re.findall(r"map[a-z_]*\(([^,)]+)", word)
        return found or ([word] if word.startswith("/") and "." in word and files.text(word) is not None else [])


def _is_of_tcp(section: Section) -> bool:
    return section.kind in ("frontend", "listen", "backend") and protocol_of(section) == "tcp"


def _without(words: tuple[str, ...], option: str) -> list[str]:
    found = list(words)
    if option in found:
        at = found.index(option)
        del found[at : at + 2]
    return found


def _joined(words: list[str]) -> str:
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word and re.fullmatch(r"[A-Za-z0-9_.,:;/=!@%*+?^$()|{}<>~&-]+", word):
        return word
    return "'" + word.replace("'", "'\\''").replace("\r", "").replace("\n", " ") + "'"
