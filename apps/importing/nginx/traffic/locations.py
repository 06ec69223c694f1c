"""Which location takes a path, in the order in which nginx decides it: a list of which the first that holds counts.

1. `=`, and the redirect to a prefix with its slash where a server answers behind it.
2. The longest prefix is looked for. What is firm inside of it comes first, and it itself where it says `^~`. That keeps
   expressions of its own block away, and not those of blocks around.
3. Expressions in their order.
4. The longest prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.importing.logic.certainty import asks
from apps.importing.logic.formulas import Formula, all_of, any_of, negated
from apps.importing.logic.questions import Questions, path_asked, sayable
from apps.importing.nginx.rules.targets import Captured, beginning_of
from apps.importing.nginx.text.directives import Directive

# What a sign without a text takes: an expression of nothing, and a beginning of nothing, take every path.
ANY_PATH = {"~": ".*", "~*": ".*", "^~": "/"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A location under a condition; `slash` is the path that it redirects to instead, with a slash."""

    condition: Formula
    scope: Directive
    prefix: str = ""
    captured: Captured = field(default_factory=Captured)
    slash: str = ""


@dataclass(slots=True)
class _Level:
    """Locations of one block by kind: prefixes the longest first."""

    exact: list[tuple[str, Directive]]
    prefixes: list[tuple[str, Directive]]
    regexes: list[tuple[str, bool, Directive]]


def modifier_of(location: Directive) -> tuple[str, str]:
    """`=`, `^~`, `~`, `~*`, `@` or nothing, and the text behind it."""
    args = location.args
    if len(args) == 2:
        return args[0], args[1]
    text = args[0] if args else "/"
    for sign in ("^~", "~*", "~", "=", "@"):
        if text.startswith(sign):
            return sign, text[len(sign) :] or ANY_PATH.get(sign, "")
    return "", text


def choices_of(block: Directive, questions: Questions) -> Iterator[Choice]:
    """All locations of a server, nested ones too; a request that none takes is the block's own."""
    yield from _inside(block, questions, True)


def _inside(block: Directive, questions: Questions, around: Formula) -> Iterator[Choice]:
    """Locations of a block from which nothing around can take a request away any more."""
    yield from _firm(block, questions, around, is_last=True)
    yield from _soft(block, questions, around, is_last=True)


def _level(block: Directive) -> _Level:
    found = _Level([], [], [])
    for each in block.each("location"):
        sign, text = modifier_of(each)
        if sign == "=":
            found.exact.append((text, each))
        elif sign in ("~", "~*"):
            found.regexes.append((text, sign == "~*", each))
        elif sign in ("", "^~"):
            found.prefixes.append((text, each))
    found.prefixes.sort(key=lambda each: -len(each[0]))
    return found


def _firm(block: Directive, questions: Questions, around: Formula, *, is_last: bool) -> Iterator[Choice]:
    """What no expression of a block around can take away: equal paths, expressions, and `^~` of the last block."""
    level = _level(block)
    for text, scope in level.exact:
        yield Choice(all_of([around, path_asked(questions, "str", text)]), scope, text)
    yield from _slashes(level, questions, around)
    longer: list[str] = []
    without_regexes: list[Formula] = []
    for text, scope in level.prefixes:
        is_firm = modifier_of(scope)[0] == "^~"
        # Longer ones have taken what is their own only where they stand above.
        others = [path_asked(questions, "beg", each) for each in longer if each.startswith(text)]
        mine = all_of([path_asked(questions, "beg", text), negated(any_of(others))])
        inside = all_of([around, mine])
        if is_firm and is_last:
            yield from _inside(scope, questions, inside)
            yield Choice(inside, scope, text)
            continue
        yield from _firm(scope, questions, inside, is_last=False)
        without_regexes += [negated(mine)] if is_firm else []
        if not asks(mine, "unknown"):
            longer.append(text)
    for text, ignore_case, scope in level.regexes:
        matches = sayable(questions, questions.of_regex(text, "path", "", ignore_case=ignore_case))
        inside = all_of([around, matches, *without_regexes])
        yield from _inside(scope, questions, inside)
        yield Choice(inside, scope, captured=Captured(beginning_of(text)))


def _soft(block: Directive, questions: Questions, around: Formula, *, is_last: bool) -> Iterator[Choice]:
    """Prefixes, the longest first."""
    for text, scope in _level(block).prefixes:
        if modifier_of(scope)[0] != "^~" or not is_last:
            inside = all_of([around, path_asked(questions, "beg", text)])
            yield from _soft(scope, questions, inside, is_last=False)
            yield Choice(inside, scope, text)


def _slashes(level: _Level, questions: Questions, around: Formula) -> Iterator[Choice]:
    """`/api` leads to `/api/` where that location passes requests on, unless `/api` is a location itself."""
    there = {text for text, _ in (*level.exact, *level.prefixes)}
    for text, scope in (*level.exact, *level.prefixes):
        bare = text[:-1]
        passes = any(scope.each("proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass"))
        if text.endswith("/") and bare and bare not in there and passes:
            there.add(bare)
            yield Choice(all_of([around, path_asked(questions, "str", bare)]), scope, slash=text)
