"""Which paths a list of rules tells apart: keys for routes, and examples that show every border."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import patterns
from apps.importing.logic.formulas import Atom
from apps.importing.logic.regexes import as_pattern, checked, either_case, literal

EXACT, PREFIX, REGEX = "exact", "prefix", "regex"
_ORDER = {EXACT: 0, PREFIX: 1, REGEX: 2}
REST = "/zz-other/path"
MOST_TOGETHER = 12
_BESIDE = "[^/].*"


@dataclass(frozen=True, slots=True)
class Key:
    """The path of a route."""

    kind: str
    text: str

    def covers(self, path: str) -> bool:
        """Whether the route takes the path."""
        if self.kind == EXACT:
            return path == self.text
        if self.kind == REGEX:
            return patterns.matches(self.text, path)
        return f"{path}/".startswith(f"{self.text.rstrip('/')}/")

    def position(self) -> tuple[int, int]:
        """Sorts keys as routing does (routing.py); patterns stay in their order."""
        if self == ROOT:
            return 3, 0
        return _ORDER[self.kind], 0 if self.kind == REGEX else -len(self.text)


ROOT = Key(PREFIX, "/")


@dataclass(slots=True)
class Paths:
    """Keys in the order of precedence, examples of paths, and values that no route can have."""

    keys: list[Key]
    examples: list[str]
    odd: dict[str, str]

    def key_of(self, path: str) -> Key:
        """The first key that takes the path."""
        return next(key for key in self.keys if key.covers(path))


def paths_of(
    atoms: Iterable[Atom], *, by_pattern: bool = False, in_order: bool = False, crossed: bool = False
) -> Paths:
    """Keys for all questions about paths.

    `by_pattern` says prefixes as patterns as well. Patterns come with the longer text first, or `in_order` of the
    questions. `crossed` adds patterns for paths that begin as one rule asks and end as another one does.
    """
    atoms = list(atoms)
    keys: dict[Key, None] = {}
    examples: dict[str, None] = {}
    odd: dict[str, str] = {}
    for atom in atoms:
        for value in atom.values:
            for key in _keys(atom, value, odd):
                keys[key] = None
            examples |= dict.fromkeys(_examples(atom, value))
    if any(atom.match == "reg" for atom in atoms):  # an expression may tell a prefix from what is below it
        keys |= dict.fromkeys(Key(EXACT, key.text) for key in list(keys) if key.kind == PREFIX and key != ROOT)
    wanted = [key for key in keys if key != ROOT]
    wanted = _inner_first(wanted) if in_order else sorted(wanted, key=lambda key: -_plain_length(key))
    found = [_as_pattern(key) if by_pattern else key for key in wanted]
    found = [*(_crossed(atoms, keys) if crossed else ()), *found]
    ordered = sorted(dict.fromkeys(found), key=Key.position)
    for key in ordered:
        if key.kind == REGEX:
            examples[_path_like(key.text)] = None
    examples |= dict.fromkeys(_together(atoms, ordered))
    examples["/"] = examples[REST] = None
    return Paths([*ordered, ROOT], [path for path in examples if path.startswith("/")], odd)


def _path_like(pattern: str) -> str:
    """A path that the pattern takes: one that begins with any sign has an example that is no path."""
    found = patterns.example_of(pattern)
    paths = (f"{begin}{found}" for begin in ("", "/", "/zz", "/zz/"))
    return next((path for path in paths if path.startswith("/") and patterns.matches(pattern, path)), found)


def _crossed(atoms: list[Atom], keys: Iterable[Key]) -> list[Key]:
    """Patterns of each prefix with each ending."""
    shapes = {"end": "{}/.*{}", "sub": "{}/.*{}.*"}
    endings = [(atom.match, literal(value, ignore_case=atom.ignore_case)) for atom in atoms for value in atom.values
               if atom.match in shapes][:MOST_TOGETHER]  # fmt: skip
    prefixes = [literal(key.text) for key in keys if key.kind == PREFIX][:MOST_TOGETHER]
    patterns_of = (checked(shapes[match].format(prefix, end)) for prefix in prefixes for match, end in endings)
    return [Key(REGEX, pattern) for pattern in patterns_of if pattern]


def _together(atoms: list[Atom], keys: list[Key]) -> list[str]:
    """Paths that begin as one rule asks and end as another one does."""
    beginnings = [key.text for key in keys if key.kind == PREFIX][:MOST_TOGETHER]
    beginnings += [
        f"{value.rstrip('/')}" for atom in atoms if atom.match in ("beg", "segment") for value in atom.values
    ][:MOST_TOGETHER]
    shapes = {"end": "/zz{}", "sub": "/zz{}zz", "dir": "/{}/zz"}
    beside = [f"zz{value}" for atom in atoms if atom.match == "end" for value in atom.values][:MOST_TOGETHER]
    endings = [
        shapes[atom.match].format(value.strip("/") if atom.match == "dir" else value)
        for atom in atoms if atom.match in shapes for value in atom.values
    ][:MOST_TOGETHER]  # fmt: skip
    endings += [
        "/zz" + patterns.example_of(key.text).lstrip("/") for key in keys
        if key.kind == REGEX and key.text.startswith((".*", ".+", "[^/]"))
    ][:MOST_TOGETHER]  # fmt: skip
    return [
        f"/{begin.strip('/')}{end}" for begin in dict.fromkeys(beginnings) for end in dict.fromkeys([*endings, *beside])
    ]


def _inner_first(keys: list[Key]) -> list[Key]:
    """In their order, but a prefix inside of another one before it."""
    found: list[Key] = []
    for key in keys:
        stem = key.text.removesuffix(_BESIDE).replace("\\", "") if key.text.endswith(_BESIDE) else key.text
        inner = key.kind == PREFIX or stem != key.text
        around = [inner and each.kind == PREFIX and each.text != stem and each.covers(stem) for each in found]
        found.insert(around.index(True) if True in around else len(found), key)
    return found


def _plain_length(key: Key) -> int:
    """Longer texts first among patterns: what takes less comes before what takes more."""
    return len(key.text.replace(".*", "").replace("[^/]", ""))


def _as_pattern(key: Key) -> Key:
    if key.kind != PREFIX:
        return key
    return Key(REGEX, checked(literal(key.text) + "(/.*)?") or key.text)


def _keys(atom: Atom, value: str, odd: dict[str, str]) -> list[Key]:
    if atom.ignore_case and value.lower() != value.upper() and atom.match in ("str", "beg", "segment"):
        return [*_keys_of_text(atom.match, value, odd), *_either_case(atom.match, value)]
    if atom.match in ("str", "beg", "segment"):
        return _keys_of_text(atom.match, value, odd)
    escaped = literal(value, ignore_case=atom.ignore_case)
    pattern = {
        "end": lambda: checked(f".*{escaped}"),
        "sub": lambda: checked(f".*{escaped}.*"),
        "dir": lambda: checked(f".*/{literal(value.strip('/'), ignore_case=atom.ignore_case)}(/.*)?"),
        "reg": lambda: as_pattern(value, ignore_case=atom.ignore_case),
    }.get(atom.match, lambda: None)()
    if pattern is None:
        odd[value] = f"{value} is no pattern that routes may have"
        return []
    return [Key(REGEX, pattern)]


def _either_case(match: str, value: str) -> list[Key]:
    pattern = checked(either_case(literal(value)) + {"str": "", "beg": ".*", "segment": "(/.*)?"}[match])
    return [Key(REGEX, pattern)] if pattern and match != "segment" else []


def _keys_of_text(match: str, value: str, odd: dict[str, str]) -> list[Key]:
    """The keys of a whole path, of whatever begins with a text, and of a first segment."""
    value = "/" + value if match == "segment" else value
    bare = value.rstrip("/") or "/"
    try:
        grammar.path(value if match == "str" else bare)
    except GrammarError as error:
        odd[value] = f"{value}: {error.message}"
        return []
    if match == "str":
        return [Key(EXACT, value)]
    if match == "segment" or bare == "/":
        return [Key(PREFIX, bare)]
    if value.endswith("/"):
        return [Key(PREFIX, bare), Key(EXACT, bare)]
    beside = checked(f"{literal(value)}{_BESIDE}")
    return [Key(PREFIX, value), *([Key(REGEX, beside)] if beside else [])]


def _examples(atom: Atom, value: str) -> list[str]:
    """The value, longer and shorter neighbours, and paths below it."""
    if atom.match in ("str", "beg", "segment"):
        text = "/" + value if atom.match == "segment" else value
        bare = text.rstrip("/")
        below = [f"{bare}/zz", f"{bare}zz", f"{bare}-9.z", f"{bare}/", bare, bare[:-1]]
        return [text, *below, *([text.upper()] if atom.ignore_case else [])]
    if atom.match in ("end", "sub", "dir"):
        bare = value.strip("/")
        return [f"/zz{value}", f"/zz{value}/zz", f"/{bare}", f"/zz/{bare}/zz", f"/zz/q{bare}"]
    return []
