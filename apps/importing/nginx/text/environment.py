"""Variables of the environment in a template of nginx.conf, such as `${BACKEND}`: nginx itself has none of capitals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from apps.importing.nginx.text.directives import Directive
from apps.importing.verdicts import Ledger

_VARIABLE = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*)(?![a-z]))")
SETS = {"set": 0, "map": 1, "geo": -1}


def with_environment(text: str, environment: Mapping[str, str]) -> str:
    """The text with the variables that were given, as `envsubst` writes it."""
    if not environment:
        return text
    return _VARIABLE.sub(lambda found: environment.get(found[1] or found[2], found[0]), text)


def say_unset(ledger: Ledger, directives: Iterable[Directive]) -> None:
    """Ask for the others, unless the file itself gives them a value."""
    directives = list(directives)
    own = {each.args[SETS[each.name]].lstrip("$") for each in directives if each.name in SETS and len(each.args) > 1}
    own |= {each.args[0].lstrip("$") for each in directives if each.name == "geo" and len(each.args) == 1}
    for each in directives:
        for found in (one for arg in each.args for one in _VARIABLE.finditer(arg)):
            name = found[1] or found[2]
            if name not in own:
                ledger.unset(each.line, name)
