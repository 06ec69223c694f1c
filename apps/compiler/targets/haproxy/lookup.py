"""Which route a request has, `txn.route`: the maps are asked by host and path, then groups by their conditions.

Hosts are asked in the order of routing.py: the exact one, `*.` for its first label, `**.` for each number of labels
that the load balancer's suffixes have, `*`. The last two are asked only where it has such hostnames.

A suffix is a key like any other: its last two, three … labels are cut out of the host (`field(-1,.,2)`), once for each
number of labels, the most first. So 100 000 suffixes cost what one does; HAProxy's `map_end` and `map_dom` walk through
all of them, and the latter finds `a.example` in `a.example.evil` too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apps.compiler.matching import hosts, patterns
from apps.compiler.model.shared import PathKind, Route, ValueCondition, ValueMatch
from apps.compiler.targets.haproxy.maps import GROUP, Group, RouteMaps, map_path
from apps.compiler.targets.haproxy.writer import Argument, Call, Opaque, Section, Value

_FOUND = ("{", "var(txn.route)", "-m", "found", "}")
_NOT_FOUND = ("if", "!", *_FOUND)
# HAProxy takes 64 words in a line; conditions that need more get names, and their lines say them.
WORDS_IN_LINE = 60
WORDS_OF_NAME = 40

Test = tuple[bool, list[Argument]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The maps of a load balancer that is served under an id, and the condition `only` under which they are asked."""

    served_id: str
    maps: RouteMaps
    only: tuple[str, ...] = ()


def add_lookup(section: Section, each_asked: Sequence[Asked]) -> None:
    """`txn.route` of the first maps whose condition holds; without a key the others find nothing."""
    section.add("http-request", "set-var(txn.host)", "req.fhdr(host),host_only,lower")
    section.add("http-request", "set-var(txn.path)", "path")
    for number, asked in enumerate(each_asked):
        if number:
            section.add("http-request", "unset-var(txn.key)")
        _add_lookup(section, asked)


def _add_lookup(section: Section, asked: Asked) -> None:
    maps = asked.maps
    only = ("if", *asked.only) if asked.only else ()
    section.add("http-request", "set-var(txn.key)", "var(txn.host),concat(,txn.path)", *only)
    _add_lookup_of_key(section, asked.served_id, first=True)
    _add_groups(section, maps, lambda name: not hosts.is_wildcard(name))
    _add_key(section, asked, "*.%[var(txn.host),field(2,.,0)]")
    _add_lookup_of_key(section, asked.served_id)
    _add_groups(section, maps, lambda name: name.startswith(hosts.ONE_LABEL))
    for labels in maps.suffix_labels:
        _add_suffixes(section, asked, labels)
    if maps.any_host:
        _add_key(section, asked, hosts.ANY)
        _add_lookup_of_key(section, asked.served_id)
        _add_groups(section, maps, lambda name: name == hosts.ANY)


def _add_suffixes(section: Section, asked: Asked, labels: int) -> None:
    """Suffixes of so many labels; of a host without more, the cut leaves a shorter suffix, which takes it too."""
    _add_key(section, asked, f"**.%[var(txn.host),field(2,.,0),field(-1,.,{labels})]")
    _add_lookup_of_key(section, asked.served_id)
    _add_groups(section, asked.maps, lambda name: name.startswith(hosts.SUFFIX) and name.count(".") == labels)


def _add_key(section: Section, asked: Asked, host: str) -> None:
    section.add("http-request", "set-var-fmt(txn.key)", f"{host}%[var(txn.path)]", *_NOT_FOUND, *asked.only)


def _add_lookup_of_key(section: Section, served_id: str, *, first: bool = False) -> None:
    exact = f"var(txn.key),map_str({map_path(served_id, 'exact')})"
    prefix = f"var(txn.key),concat(/),map_beg({map_path(served_id, 'prefix')})"
    section.add("http-request", "set-var(txn.route)", exact, *(() if first else _NOT_FOUND))
    section.add("http-request", "set-var(txn.route)", prefix, *_NOT_FOUND)


def _add_groups(section: Section, maps: RouteMaps, is_of: Callable[[str], bool]) -> None:
    """The candidates of each group in order; the first that holds replaces the group, so that no later one does."""
    groups = [group for group in maps.groups if is_of(group.hostname)]
    named: set[str] = set()
    for group in groups:
        _add_group(section, group, named)
    if groups:
        section.add("http-request", "unset-var(txn.route)", "if", "{", "var(txn.route)", "-m", "beg", GROUP, "}")


def _add_group(section: Section, group: Group, named: set[str]) -> None:
    """One line for each candidate; `named` are those whose conditions have names of this frontend already."""
    is_group = ("{", "var(txn.route)", "-m", "str", group.id, "}")
    for route in group.candidates:
        tests = tests_of(route)
        said: list[Argument] = [word for negated, words in tests for word in (*("!" * negated), "{", *words, "}")]
        if len(is_group) + 4 + len(said) > WORDS_IN_LINE:
            said = [f"{'!' * negated}{route.id}-{number}" for number, (negated, _) in enumerate(tests, 1)]
            if route.id not in named:
                named.add(route.id)
                _add_names(section, route, tests)
        section.add("http-request", "set-var(txn.route)", f"str({route.id})", "if", *is_group, *said, owner=route.id)


def _add_names(section: Section, route: Route, tests: Sequence[Test]) -> None:
    """A name for each condition; lines of one name are alternatives, so that networks may fill several."""
    for number, (_, (fetch, *words)) in enumerate(tests, 1):
        for start in range(0, len(words), WORDS_OF_NAME):
            section.add("acl", f"{route.id}-{number}", fetch, *words[start : start + WORDS_OF_NAME], owner=route.id)


def tests_of(route: Route) -> list[Test]:
    """What must hold for the route after its key was found: whether it is negated, and its words."""
    tests: list[Test] = []
    if route.path_kind is PathKind.REGEX:
        tests.append((False, ["var(txn.path)", *_regex(route.path)]))
    if route.methods:
        tests.append((False, ["method", *map(Value, sorted(route.methods))]))
    for fetch, conditions in (("req.fhdr(", route.headers), ("urlp(", route.query), ("req.cook(", route.cookies)):
        tests += [_test(Call((fetch, Value(each.name), ")")), each) for each in sorted(conditions, key=_order)]
    if route.client_networks:
        tests.append((False, ["src", *map(Value, sorted(route.client_networks))]))
    return tests


def _order(condition: ValueCondition) -> tuple[str, ValueMatch, str]:
    return condition.name.lower(), condition.match, condition.value


def _test(value: Argument, condition: ValueCondition) -> Test:
    """Whole values are compared; `--` ends the flags, so that a value can never be one."""
    match condition.match:
        case ValueMatch.PRESENT:
            return False, [value, "-m", "found"]
        case ValueMatch.ABSENT:
            return True, [value, "-m", "found"]
        case ValueMatch.EQUALS:
            return False, [value, "-m", "str", "--", Value(condition.value)]
        case ValueMatch.PREFIX:
            return False, [value, "-m", "beg", "--", Value(condition.value)]
        case ValueMatch.REGEX:
            return False, [value, *_regex(condition.value)]


def _regex(text: str) -> list[Argument]:
    """Where the engine gives up, nothing matches: the request goes to another route, as routes never deny."""
    return ["-m", "reg", "--", Opaque(patterns.whole(text))]
