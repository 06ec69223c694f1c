"""What `set-var` gives variables, and what is captured of requests, read before the conditions that look at them."""

from __future__ import annotations

import re
from functools import partial

from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.formulas import And, Formula
from apps.importing.verdicts import Line

_USED = re.compile(r"%\[var\(([A-Za-z0-9_.]+)\)\]")
# What stays as it is while a request is changed.
_KEPT = re.compile(r"(?:src|method|ssl_fc_protocol|(?:req\.)?f?hdr\(host\))(?:,|$)", re.IGNORECASE)
_TEXT = re.compile(r"str\(([^()\"']*)\)")
_CAPTURED = re.compile(r"%\[(capture\.req\.hdr\([0-9]+\))")
_HEADER = re.compile(r"(?:req\.)?f?hdr\(([A-Za-z0-9-]+)\)")
_NAME = re.compile(r"set-var(?:-fmt)?\(([^,)]+)[^)]*\)")


def read_variables(context: Context) -> None:
    """All of the file: frontends first, since they come first for a request."""
    for kind in ("frontend", "listen", "backend"):
        for section in context.configuration.of_kind(kind):
            _of_section(context, section)


def filled(context: Context, words: tuple[str, ...], formula: Formula) -> tuple[str, ...]:
    """The words with the expression of each variable in its place that surely has it where the formula holds."""

    def value(found: re.Match[str]) -> str:
        given = context.questions.variables.given.get(found[1], [])
        if len(given) != 1:
            return found[0]
        text, condition = given[0]
        parts = (formula, *(formula.parts if isinstance(formula, And) else ()))
        if condition is not True and condition not in parts:
            return found[0]
        constant = _TEXT.fullmatch(text)
        return constant[1] if constant else f"%[{text}]" if _KEPT.match(text) else found[0]

    return tuple(_USED.sub(value, _CAPTURED.sub(partial(_captured, context), word)) for word in words)


def _captured(context: Context, found: re.Match[str]) -> str:
    """The name of the header in the place of the slot's number; the host has a variable of its own."""
    given = context.questions.variables.given.get(found[1], [])
    header = _HEADER.fullmatch(given[0][0]) if len(given) == 1 else None
    if header is None:
        return found[0]
    return "%[req.hdr(host)" if header[1].lower() == "host" else f"%[capture.req.hdr({header[1]})"


def _of_section(context: Context, section: Section) -> None:
    given = context.questions.variables.given
    for number, expression in enumerate(_captures(section)):
        if expression and (expression, True) not in given.get(name := f"capture.req.hdr({number})", ()):
            given.setdefault(name, []).append((expression, True))
    conditions = Conditions(section, context.questions, context.ledger)
    for line in section.all_lines():
        if line.keyword in ("http-request", "tcp-request"):
            _of_line(context, conditions, line)


def _captures(section: Section) -> list[str]:
    """The expression of each slot, in their order; empty for one that nothing fills."""
    slots: list[str] = []
    for words in (line.words for line in section.all_lines()):
        if words[:3] == ("capture", "request", "header") and len(words) > 3:
            slots.append(f"req.hdr({words[3]})")
        elif words[:3] == ("declare", "capture", "request"):
            slots.append("")
        elif words[:2] == ("http-request", "capture") and "len" in words:
            slots.append(words[2])
        elif words[:2] == ("http-request", "capture") and words[3:4] == ("id",):
            slots = [words[2] if words[4:5] == (str(at),) else each for at, each in enumerate(slots)]
    return slots


def _of_line(context: Context, conditions: Conditions, line: Line) -> None:
    at = next((at for at, word in enumerate(line.words) if word.startswith("set-var")), 0)
    found = _NAME.fullmatch(line.words[at]) if at else None
    if found is None:
        return
    words, formula = conditions.of(line.words[at + 1 :])
    text = " ".join(words)
    if line.words[at].startswith("set-var-fmt"):
        text = f"str({text})"
    context.questions.variables.given.setdefault(found[1], []).append((text, formula))
