"""`if (…)` as a question about the request."""

from __future__ import annotations

from apps.importing.logic.formulas import Formula, negated
from apps.importing.nginx.rules.variables import Variables
from apps.importing.nginx.text.directives import Directive

OPERATORS = {"=": ("=", False), "!=": ("=", True), "~": ("~", False), "~*": ("~*", False), "!~": ("~", True),
             "!~*": ("~*", True)}  # fmt: skip


def asks_for_files(directive: Directive) -> bool:
    """Whether it looks for files of the machine, where nodes have none."""
    first = directive.args[0].lstrip("(!") if directive.args else ""
    return first in ("-f", "-d", "-e", "-x")


def condition_of(directive: Directive, variables: Variables) -> Formula:
    """The formula of the words between the parentheses."""
    words = list(directive.args)
    if words and words[0].startswith("("):
        words[0] = words[0][1:]
    if words and words[-1].endswith(")"):
        words[-1] = words[-1][:-1]
    if words and not words[0]:
        words.pop(0)
    if words and not words[-1] and not (len(words) == 3 and words[1] in OPERATORS):
        words.pop()
    if len(words) == 1 and words[0].startswith("$"):
        return variables.holds(words[0])
    if len(words) == 3 and words[1] in OPERATORS:
        operator, minus = OPERATORS[words[1]]
        formula = variables.asked(words[0], operator, words[2])
        return negated(formula) if minus else formula
    if asks_for_files(directive):
        return words[0].startswith("!")
    return variables.unknown(f"the condition {' '.join(words)} is not understood")
