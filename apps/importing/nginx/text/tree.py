"""The directives of nginx.conf and of the files that it includes, each with a line that waits for a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from apps.importing.files import Files
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.text.words import shown, words_of
from apps.importing.verdicts import Ledger, Line, Verdict

DEEPEST, MOST = 24, 100_000
# What packages bring along, and nobody needs here.
KNOWN_FILES = ("mime.types", "modules-enabled", "modules.conf", "/modules/", "fastcgi_params", "fastcgi.conf",
               "uwsgi_params", "scgi_params", "letsencrypt/options-ssl-nginx.conf")  # fmt: skip
NOT_CLOSED = "A block that begins here is not closed; nginx does not take such a file."


@dataclass(slots=True)
class _Open:
    """A file while it is read: the blocks that are open, and how many directives each of its lines has had."""

    file: str
    blocks: list[Directive]
    outer: int
    on_line: dict[int, int] = field(default_factory=dict)


class Tree:
    """Reads one configuration. `needs` are files that were not given."""

    def __init__(self, text: str, files: Mapping[str, str], ledger: Ledger) -> None:
        self.ledger = ledger
        self.needs: dict[str, None] = {}
        self._texts = files
        self._files = Files(files)
        self._count = 0
        self.root = Directive("", (), Line(0, (), ""), block=[])
        self._read(text, "", self.root, ())

    def _read(self, text: str, file: str, into: Directive, reading: tuple[str, ...]) -> None:
        depth = _depth(into)
        state = _Open(file, [into], depth)
        words: list[str] = []
        number = 0
        for word in words_of(text):
            if not word.ends:
                number = number if words else word.line
                words.append(word.text)
            elif word.text == "}" and not words:
                self._close(state, word.line)
            elif words or word.text == "{":
                self._directive(state, words, number if words else word.line, word.text, reading)
                words = []
                if word.text == "}":
                    self._close(state, word.line)
        if words:
            self._directive(state, words, number, "", reading)
        for block in state.blocks[1:]:
            self.ledger.impossible(block.line, NOT_CLOSED)

    def _close(self, state: _Open, number: int) -> None:
        if len(state.blocks) > 1:
            state.blocks.pop()
            return
        line = self._line(state, number, ("}",), "}")
        self.ledger.impossible(line, "No block is open here that this could close.")

    def _line(self, state: _Open, number: int, words: tuple[str, ...], text: str) -> Line:
        at = state.on_line.get(number, 0)
        state.on_line[number] = at + 1
        line = Line(number, words, text, _section(state.blocks[-1]), state.file, at)
        self.ledger.add(line)
        return line

    def _directive(self, state: _Open, words: list[str], number: int, end: str, reading: tuple[str, ...]) -> None:
        name, args = (words[0], tuple(words[1:])) if words else ("", ())
        text = shown(name, args) + (" {" if end == "{" else "")
        line = self._line(state, number, (name, *args), text.strip())
        found = Directive(name, args, line, state.blocks[-1], [] if end == "{" else None)
        self._count += 1
        if end not in (";", "{"):
            self.ledger.impossible(line, "This directive does not end; write a semicolon behind it.")
        if len(state.blocks) + state.outer > DEEPEST or self._count > MOST:
            self.ledger.impossible(line, f"Blocks are read {DEEPEST} deep, and {MOST} directives in all.")
        elif name == "include" and end == ";":
            self._include(found, state.blocks[-1], reading)
        else:
            state.blocks[-1].add(found)
        if end == "{":
            state.blocks.append(found)

    def _include(self, found: Directive, into: Directive, reading: tuple[str, ...]) -> None:
        """The files that were given under the name; none of this machine is looked at."""
        path = found.args[0] if found.args else ""
        names = self._names(path)
        if into.name == "types" or any(each in path for each in KNOWN_FILES):
            self.ledger.note(found.line, Verdict.NODE_SETTING, "Types of files and modules of nginx are not needed.")
            return
        for name in names:
            if name in reading:
                self.ledger.impossible(found.line, f"{name} includes itself.")
            elif len(reading) > DEEPEST or self._count > MOST:
                self.ledger.impossible(found.line, f"Files are read {DEEPEST} deep, and {MOST} directives in all.")
            else:
                self.ledger.mapped(found.line)
                self._read(self._texts[name], name, into, (*reading, name))
        if not names and any(sign in path for sign in "*?["):
            self.ledger.differs(found.line, f"No file was given that {path} names; give them with --files.")
        elif not names:
            into.add(found)
            self.ledger.differs(found.line, f"The file {path} was not given.")
            self.needs[f"The file {path} (--files)."] = None

    def _names(self, path: str) -> list[str]:
        if not any(sign in path for sign in "*?["):
            name = self._files.path_of(path)
            return [name] if name is not None else []
        pattern = PurePosixPath(path)
        whole = [name for name in self._texts if fnmatchcase(name, path) and name.count("/") == path.count("/")]
        below = [
            name for name in self._texts
            if fnmatchcase(PurePosixPath(name).name, pattern.name)
            and PurePosixPath(name).parent.name == pattern.parent.name
        ]  # fmt: skip
        flat = [name for name in self._texts if "/" not in name and fnmatchcase(name, pattern.name)]
        return sorted(whole or below or (flat if pattern.suffix else []))


def _depth(block: Directive) -> int:
    depth, each = 0, block.parent
    while each is not None:
        depth, each = depth + 1, each.parent
    return depth


def _section(block: Directive) -> str:
    """`http > server shop.example.com > location /api`."""
    parts: list[str] = []
    each: Directive | None = block
    while each is not None and each.name:
        names = next((one.args for one in each.each("server_name")), ())
        args = names[:1] if each.name == "server" else each.args
        parts.insert(0, shown(each.name, args))
        each = each.parent
    return " > ".join(parts)
