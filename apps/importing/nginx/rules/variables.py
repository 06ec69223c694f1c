"""Variables of nginx: what `set` and `map` give them, and the questions about requests that the built-in ones ask."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from apps.importing.context import FORWARDED_PROTO
from apps.importing.logic.formulas import Formula, all_of, any_of, atoms_of, negated
from apps.importing.logic.questions import Questions, sayable
from apps.importing.logic.regexes import as_texts
from apps.importing.nginx.rules.targets import host_beginning_of
from apps.importing.nginx.text.directives import Directive
from apps.importing.values.networks import NOBODY, Ranges, addresses, common, outside, union, written

MOST, LONGEST = 64, 4096
_PART = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
PATHS = ("uri", "document_uri", "request_uri")
OTHER_MATCH = "Of all hosts that begin so or have this in them, those that the file names have routes."
HOSTS = ("host", "http_host")
Choice = tuple[Formula, str]


@dataclass(slots=True)
class Variables:
    """`given` has for a variable its values, each with its condition; the first whose condition holds is the one."""

    questions: Questions
    given: dict[str, list[Choice]] = field(default_factory=dict)
    lines: dict[str, Directive] = field(default_factory=dict)

    def copy(self) -> Variables:
        """For a block, the `set` of which holds nowhere else."""
        return Variables(self.questions, dict(self.given), self.lines)

    def set(self, name: str, text: str, condition: Formula) -> None:
        """`set $name text` under a condition; what was there before holds where it does not."""
        before = self.given.get(name, [(True, "")])
        choices = [(all_of([condition, each]), value) for each, value in self.choices(text)]
        self.given[name] = choices if condition is True else [*choices, *before]

    def choices(self, text: str, used: frozenset[str] = frozenset()) -> list[Choice]:
        """The text with the values of such variables, for each of their conditions; built-in ones stay.

        So do those that are made of themselves (`used`).
        """
        names = [name for found in _PART.finditer(text) if (name := found[1] or found[2]) in self.given]
        name = next((name for name in names if name not in used), None)
        if name is None:
            return [(True, text)]
        pattern = re.compile(rf"\$(?:\{{{name}\}}|{name}\b)")
        found: list[Choice] = []
        before: list[Formula] = []
        for condition, value in self.given[name]:
            new = pattern.sub(lambda _, value=value: value, text)  # type: ignore[misc]
            for inner, whole in self.choices(new, used | {name}) if len(new) <= LONGEST else ():
                found.append((all_of([*before, condition, inner]), whole))
            before.append(negated(condition))
            if len(found) > MOST:
                break
        return [each for each in found if each[0] is not False][:MOST]

    def read_map(self, block: Directive) -> str:
        """`map source $name { … }`; the reason where it cannot be read."""
        if len(block.args) != 2 or not block.args[1].startswith("$"):
            return "A map has a source and a variable."
        source, name = block.args[0], block.args[1][1:]
        default = ""
        exact: list[tuple[str, str]] = []
        regexes: list[tuple[str, str]] = []
        wild: list[tuple[str, str]] = []
        hostnames = block.last("hostnames") is not None
        for entry in block.block or ():
            if entry.name == "default":
                default = entry.args[0] if entry.args else ""
            elif entry.name == "include":
                return "Its entries are in a file that was not given."
            elif entry.name not in ("hostnames", "volatile") and entry.args:
                kind = regexes if entry.name.startswith("~") else exact
                kind = wild if hostnames and entry.name.startswith(("*.", ".")) else kind
                kind.append((entry.name, entry.args[0]))
        wild.sort(key=lambda each: -len(each[0]))
        self.given[name] = [(self._entry(source, key), value) for key, value in (*exact, *wild, *regexes)]
        self.given[name].append((True, default))
        self.lines[name] = block
        return ""

    def read_geo(self, block: Directive) -> str:
        """`geo $name { 10.0.0.0/8 1; }`, of which the longest network counts; the reason where it cannot be read."""
        source, name = ("$remote_addr", *block.args)[-2:] if block.args else ("", "")
        if source not in ("$remote_addr", "$binary_remote_addr") or not name.startswith("$"):
            return "The address of the client alone is compared with networks."
        default, found = "", []
        for entry in block.block or ():
            if entry.name == "default":
                default = entry.args[0] if entry.args else ""
                continue
            try:
                found.append((ipaddress.ip_network(entry.name, strict=False), entry.args[0] if entry.args else ""))
            except ValueError:
                return f"Its entries are networks; {entry.name} is none."
        found.sort(key=lambda each: -each[0].prefixlen)
        taken: Ranges = NOBODY
        own: dict[str, Ranges] = {}
        for network, value in found:
            mine = common(addresses((str(network),)), outside(taken))
            own[value], taken = union((*own.get(value, NOBODY), *mine)), union((*taken, *mine))
        own.pop(default, None)
        given = [
            (self.questions.atoms.get("source", "in", written(each)), value) for value, each in own.items() if each
        ]
        self.given[name[1:]] = [*given, (True, default)]
        self.lines[name[1:]] = block
        return ""

    def _entry(self, source: str, key: str) -> Formula:
        if key.startswith("~*"):
            return self.asked(source, "~*", key[2:])
        if key.startswith("~"):
            return self.asked(source, "~", key[1:])
        if key.startswith("*."):
            return self.questions.atoms.get("host", "end", (key[1:].lower(),))
        if key.startswith("."):
            ends = self.questions.atoms.get("host", "end", (key.lower(),))
            return any_of([ends, self.questions.atoms.get("host", "str", (key[1:].lower(),))])
        return self.asked(source, "=*", key.removeprefix("\\"))

    def asked(self, text: str, operator: str, value: str) -> Formula:
        """Whether the text is equal to the value (`=`), in any case (`=*`), or matches (`~`, `~*`)."""
        if (found := _PART.fullmatch(text)) and (name := found[1] or found[2]) not in self.given:
            return self._of_request(name, operator, value)
        parts: list[Formula] = []
        for condition, constant in self.choices(text):
            if _PART.search(constant):
                inner = self._built_in(constant, operator, value)
            else:
                inner = _constant(constant, operator, value)
            parts.append(all_of([condition, inner]))
        return any_of(parts)

    def holds(self, text: str) -> Formula:
        """`if ($x)`: not empty and not 0."""
        found = _PART.fullmatch(text)
        if found and (name := found[1] or found[2]) not in self.given:
            return self._is_there(name)
        return any_of([all_of([condition, self._is_set(value)]) for condition, value in self.choices(text)])

    def _is_set(self, value: str) -> Formula:
        found = _PART.fullmatch(value)
        if found is None:
            return value not in ("", "0")
        name = found[1] or found[2]
        return self.unknown(f"{value} is made of itself") if name in self.given else self._is_there(name)

    def _built_in(self, text: str, operator: str, value: str) -> Formula:
        found = _PART.fullmatch(text)
        if found is None or (found[1] or found[2]) in self.given:
            return self.unknown(f"{text} is put together")
        return self.asked(text, operator, value)

    def unknown(self, why: str) -> Formula:
        """A question that no route can ask."""
        return self.questions.unknown(why)

    def _is_there(self, name: str) -> Formula:
        if name == "https":
            return self.questions.atoms.get("scheme", "https")
        if name in (*PATHS, *HOSTS, "scheme", "request_method", "remote_addr"):
            return True
        subject, named = _subject(name)
        return self.questions.atoms.get(subject, "found", name=named) if named else self.unknown(_not_asked(name))

    def _of_request(self, name: str, operator: str, value: str) -> Formula:
        if name in ("https", "scheme"):
            return self._scheme(name, operator, value)
        if name == "request_method":
            return self._method(operator, value)
        if name in ("remote_addr", "binary_remote_addr"):
            return self._source(operator, value)
        subject, named = _subject(name)
        return self._text(subject, named, operator, value) if subject else self.unknown(_not_asked(name))

    def _scheme(self, name: str, operator: str, value: str) -> Formula:
        is_https = self.questions.atoms.get("scheme", "https")
        plain, encrypted = ("", "on") if name == "https" else ("http", "https")
        holds = _compares(operator, value, plain), _compares(operator, value, encrypted)
        if holds[0] == holds[1]:
            return holds[0]
        return is_https if holds[1] else negated(is_https)

    def _text(self, subject: str, named: str, operator: str, value: str) -> Formula:
        atoms, ignore_case = self.questions.atoms, operator == "=*"
        if subject == "header" and named == FORWARDED_PROTO:
            told = self.questions.of_told_scheme(each for each in ("http", "https") if _compares(operator, value, each))
            if told is not None:
                return told
        if operator in ("~", "~*") and subject == "host" and (begins := host_beginning_of(value)):
            return atoms.get("host", "beg", (begins[0],))
        if operator in ("~", "~*"):
            return sayable(self.questions, self.questions.of_regex(value, subject, named, ignore_case=operator == "~*"))
        if value == "" and subject in ("header", "query", "cookie"):
            return negated(atoms.get(subject, "found", name=named))
        if subject == "path" and "?" in value:
            return self.unknown(f"path and query are compared together ({value})")
        text = value.lower() if subject == "host" else value
        return atoms.get(subject, "str", (text,), name=named, ignore_case=ignore_case and subject != "host")

    def _method(self, operator: str, value: str) -> Formula:
        if operator in ("=", "=*"):
            return self.questions.atoms.get("method", "str", (value.upper(),))
        texts = as_texts(value)
        if texts is None or any(match != "str" for match, _ in texts):
            return self.unknown(f"the methods of {value} are not listed; write ^(GET|HEAD)$")
        return self.questions.atoms.get("method", "str", tuple(text.upper() for _, text in texts))

    def _source(self, operator: str, value: str) -> Formula:
        try:
            network = str(ipaddress.ip_network(value))
        except ValueError:
            return self.unknown(f"addresses of clients are compared with networks, not with {value}")
        if operator not in ("=", "=*"):
            return self.unknown("addresses of clients are compared with networks, not with patterns")
        return self.questions.atoms.get("source", "in", (network,))


def asks_parts_of_hosts(formula: Formula) -> bool:
    """Whether it asks how hosts begin or what is in them, where routes have whole ones and endings."""
    return any(atom.subject == "host" and atom.match in ("beg", "sub") for atom in atoms_of(formula))


def _subject(name: str) -> tuple[str, str]:
    if name in HOSTS:
        return "host", ""
    if name in PATHS:
        return "path", ""
    for prefix, subject in (("http_", "header"), ("cookie_", "cookie"), ("arg_", "query")):
        if name.startswith(prefix):
            named = name.removeprefix(prefix)
            return subject, named.replace("_", "-") if subject == "header" else named
    return "", ""


def _not_asked(name: str) -> str:
    return f"${name} is nothing that a route can ask"


def _compares(operator: str, value: str, text: str) -> bool:
    if operator == "=":
        return text == value
    if operator == "=*":
        return text == value.lower()
    try:
        return re.search(value, text, re.IGNORECASE if operator == "~*" else 0) is not None
    except re.error:
        return False


def _constant(text: str, operator: str, value: str) -> bool:
    return _compares(operator, value, text.lower() if operator == "=*" else text)
