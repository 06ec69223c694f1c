"""Redirects whose target is the value of a map: one rule for each entry."""

from __future__ import annotations

import re

from apps.importing.haproxy.criteria.samples import Sample, parse_sample
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.certainty import surely
from apps.importing.logic.formulas import Formula
from apps.importing.verdicts import Line

_PART = re.compile(r"%(?:\{[^}]*\})?\[([^\[\]]*,map(?:_[a-z_]+)?\([^\[\]]*)\]")

Mapped = list[tuple[tuple[str, ...], Formula]]


def by_map(context: Context, line: Line, words: tuple[str, ...]) -> Mapped | None:
    """The words with the value of each entry, and when it counts; None where no word asks a map."""
    at = next((at for at, word in enumerate(words) if _PART.search(word)), None)
    found = _PART.search(words[at]) if at is not None else None
    sample = parse_sample(found[1]) if found else None
    if at is None or found is None or sample is None:
        return None
    last = next((number for number, name in enumerate(sample.converter_names) if name.startswith("map")), None)
    if last is None or last + 1 < len(sample.converters):
        return None
    name, args = sample.converters[last]
    entries = context.files.entries(args[0]) if args else None
    if entries is None:
        context.ledger.differs(line, f"The map {args[0] if args else ''} was not given.")
        context.need(f"The file {args[0] if args else ''} (--files).")
        return []
    bare = Sample(sample.fetch, sample.args, sample.converters[:last])
    kind = name.partition("_")[2].split("_")[0] or "str"
    made: Mapped = []
    for key, value in entries:
        formula, unknown = surely(context.questions.map_keys(bare, kind, key))
        if unknown:
            context.ledger.differs(line, f"The map has a key that cannot be asked: {unknown[0]}.")
        else:
            text = words[at][: found.start()] + value + words[at][found.end() :]
            made.append(((*words[:at], text, *words[at + 1 :]), formula))
    return made
