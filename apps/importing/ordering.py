"""The order of an import that somebody sends: files by name, and answers to what they cannot know; read strictly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from apps.accounts.models import Account
from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.fields import Reader
from apps.definitions.shapes.base.words import MAX_LIST
from apps.fleet.models import Fleet, Region
from apps.importing.formats import FORMATS, Format, configuration_of, divided, not_recognised, recognised
from apps.importing.options import ImportOptions

MOST_FILES, MOST_BYTES, MOST_LINES, LONGEST_LINE = 200, 4 * 1024 * 1024, 20_000, 16 * 1024
LONGEST_NAME, LONGEST_WORD, LONGEST_PREFIX = 255, 1024, 30
# What to do with a file that is too much for a request.
BY_COMMAND = "Import it on the console's machine with manage.py import, which has no such limit."
MAPS = ("servers", "certificates", "addresses", "passwords", "environment")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Order:
    """The configuration, the files beside it, and the options. None of it is stored, nor shown in a traceback."""

    name: str
    format: Format = field(repr=False)
    text: str = field(repr=False)
    files: Mapping[str, str] = field(repr=False)
    options: ImportOptions = field(repr=False)


def read_order(data: object) -> Order:
    """`{files: {name: text}, file?, format?, account?, fleets?, region?, prefix?, servers?, …}`. Raises Invalid.

    `file` names the configuration where more than one file could be it.
    """
    field_errors: list[FieldError] = []
    reader = Reader(data, "", field_errors)
    files = _files(reader)
    asked = _asked_format(reader)
    name = _configuration(reader, files, asked)
    form = asked or _recognised(reader, name, files.get(name))
    if form is not None and name in files:
        _check(reader, form, name, files)
    options = _options(reader)
    reader.close()
    if field_errors or form is None:
        raise Invalid(field_errors)
    text, beside = divided(form, name, files)
    return Order(name if text else f"{name} with the other files", form, text, beside, options)


def _files(reader: Reader) -> dict[str, str]:
    """Names and texts. Files are never looked for on this machine: a name is only compared with those of the file."""
    inside = reader.child("files")
    if inside is None or reader.data["files"] == {}:
        reader.add_error("files", "missing", "Send the configuration in files, as {name: text}.")
        return {}
    if len(inside.data) > MOST_FILES:
        reader.add_error("files", "too_many", f"Send at most {MOST_FILES} files. {BY_COMMAND}")
        return {}
    found = {}
    for name in inside.data:
        if not _is_name(name):
            detail = f"Name a file by its path, at most {LONGEST_NAME} printable characters, without .. in it."
            inside.add_error(name[:80], "file_name", detail)
        else:
            found[name] = inside.required(name, _text)
    if sum(len(text.encode()) for text in found.values() if text) > MOST_BYTES:
        reader.add_error(
            "files", "too_large", f"Send at most {MOST_BYTES // 2**20} MiB in all files together. {BY_COMMAND}"
        )
    return found


def _is_name(name: str) -> bool:
    plain = 0 < len(name) <= LONGEST_NAME and name.isprintable() and "\\" not in name
    return plain and ".." not in PurePosixPath(name).parts


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise GrammarError("not_text", "Send the content of the file as text.")
    if "\0" in value:
        raise GrammarError("binary", "This is no text file; leave it out.")
    return value


def _configuration(reader: Reader, files: Mapping[str, str], asked: Format | None) -> str:
    """The name of the configuration among the files, or of the first one where several are read."""
    name = reader.optional("file", _word, "")
    if name and name not in files:
        reader.add_error("file", "unknown", "Name one of the files that you send.")
    elif not name and files:
        name = configuration_of({each: text or "" for each, text in files.items()}, asked)
        if not name:
            reader.add_error("file", "missing", "Say which of the files is the configuration.")
    return name


def _asked_format(reader: Reader) -> Format | None:
    asked = reader.optional("format", _word, "")
    if asked and asked not in FORMATS:
        reader.add_error("format", "unknown", f"Use one of {', '.join(FORMATS)}, or leave it out.")
    return FORMATS.get(asked or "")


def _recognised(reader: Reader, name: str, text: str | None) -> Format | None:
    """What the configuration looks like."""
    found = recognised(name, text or "")
    if found is None and text is not None:
        refusals = list(_refusals(name, text))
        for code, detail in refusals:
            reader.add_error("file", code, detail)
        if not refusals and "format" not in reader.data:
            reader.add_error("format", "not_recognised", not_recognised(name))
    return found


def _check(reader: Reader, form: Format, name: str, files: Mapping[str, str]) -> None:
    """The configuration can be read, and so can every file of several that are read."""
    read = {each: text or "" for each, text in files.items()} if form.is_several else {name: files[name] or ""}
    for each, text in read.items():
        for code, detail in _refusals(each, text):
            reader.add_error("file", code, detail)
    if len(read) > 1 and sum(text.count("\n") for text in read.values()) > MOST_LINES:
        reader.add_error("file", "too_large", f"The files have more than {MOST_LINES} lines. {BY_COMMAND}")


def _refusals(name: str, text: str) -> Iterator[tuple[str, str]]:
    """What keeps a configuration from being read at all."""
    lines = text.splitlines()
    if not lines:
        yield "empty", f"{name} is empty; send its text."
    if len(lines) > MOST_LINES:
        yield "too_large", f"{name} has more than {MOST_LINES} lines. {BY_COMMAND}"
    long = next((number for number, line in enumerate(lines, 1) if len(line) > LONGEST_LINE), None)
    if long:
        yield "too_long", f"Line {long} of {name} has more than {LONGEST_LINE} characters; is it a configuration?"


def _options(reader: Reader) -> ImportOptions:
    account = reader.optional("account", grammar.name, "")
    if account and not Account.objects.filter(name=account).exists():
        reader.add_error("account", "unknown", "There is no account of this name.")
    fleets = _fleets(reader)
    region = reader.optional("region", grammar.name, "")
    if region and not Region.objects.filter(name=region).exists():
        reader.add_error("region", "unknown", "There is no region of this name.")
    maps = {name: _map(reader, name) for name in MAPS}
    return ImportOptions(
        account=account,
        fleets=tuple(fleet.name for fleet in fleets),
        region=region or (fleets[0].region.name if fleets else ""),
        prefix=reader.optional("prefix", _prefix, ""),
        local_development=bool(fleets) and all(fleet.local_development for fleet in fleets),
        **maps,
    )


def _fleets(reader: Reader) -> list[Fleet]:
    """Those that are named; without a name the only one there is."""
    rows = list(Fleet.objects.select_related("region").order_by("name"))
    named = reader.optional("fleets", _names, ())
    if not named and len(rows) == 1:
        return rows
    found = [fleet for fleet in rows if fleet.name in (named or ())]
    if named == ():
        reader.add_error("fleets", "missing", "Name the fleets that run the load balancers.")
    elif named and len(found) < len(set(named)):
        known = ", ".join(fleet.name for fleet in rows[:20]) or "none"
        reader.add_error("fleets", "unknown", f"Name fleets that are there; there are {known}.")
    return found


def _names(value: object) -> Sequence[str]:
    if not isinstance(value, list) or len(value) > MAX_LIST:
        raise GrammarError("not_list", f"Write a list of at most {MAX_LIST} names.")
    return [grammar.name(each) for each in value]


def _prefix(value: object) -> str:
    if isinstance(value, str) and (value == "" or (len(value) <= LONGEST_PREFIX and _PREFIX.fullmatch(value))):
        return value
    raise GrammarError("prefix", f"Use at most {LONGEST_PREFIX} of a-z, 0-9 and -, such as shop-.")


def _word(value: object) -> str:
    if isinstance(value, str) and 0 < len(value) <= LONGEST_WORD and value.isprintable():
        return value
    raise GrammarError("word", f"Use 1 to {LONGEST_WORD} printable characters.")


def _map(reader: Reader, name: str) -> dict[str, str]:
    """Words of the file, each with what it stands for."""
    inside = reader.child(name)
    if inside is None:
        return {}
    if len(inside.data) > MAX_LIST:
        inside.add_error("", "too_many", f"Use at most {MAX_LIST} entries here.")
        return {}
    ours: Callable[[object], str] = grammar.name if name in ("certificates", "addresses") else _word
    for word in inside.data:
        if not 0 < len(word) <= LONGEST_WORD or not word.isprintable():
            inside.add_error(word[:80], "word", f"Use 1 to {LONGEST_WORD} printable characters.")
    return {word: inside.required(word, ours) for word in inside.data}
