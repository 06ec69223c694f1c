"""Other spellings of a path that ingress-nginx protects with it: in another case, or going on in the same segment."""

from __future__ import annotations

import re

from apps.compiler.matching import patterns
from apps.importing.kubernetes.ingress.paths import CASE, WHOLE_SEGMENTS, PathOfOurs

OPEN = "Other spellings of this path cannot be written as a pattern, so what protects it does not hold for them."


def other_spellings(path: PathOfOurs) -> PathOfOurs | None:
    """A pattern for what the path of ours leaves to others; None where it leaves nothing. Raises GrammarError."""
    in_any_case = CASE in path.differs
    if path.text == "/" or not (in_any_case or WHOLE_SEGMENTS in path.differs):
        return None
    if path.kind == "regex":
        regex = ignoring_case(path.regex) if path.regex else ""
        return _checked(PathOfOurs("regex", ignoring_case(path.text), path.written, path.rewrite, "", regex,
                                   path.replacement, path.differs))  # fmt: skip
    text = re.sub(r"([.])", r"\\\1", path.text)
    text = ignoring_case(text) if in_any_case else text
    new = path.prefix_rewrite
    regex, replacement = (f"{text}/?(.*)", f"{new.rstrip('/')}/\\1") if new else ("", "")
    return _checked(PathOfOurs("regex", f"{text}.*", path.written, path.rewrite, "", regex, replacement, path.differs))


def ignoring_case(text: str) -> str:
    """A pattern that takes letters in both cases; in classes as well."""
    return "".join(_part(part) for part in re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", text))


def _part(part: str) -> str:
    if part.startswith("["):
        ranges = re.findall(r"[A-Za-z]-[A-Za-z]|[A-Za-z]", re.sub(r"\\.", "", part))
        return part[:-1] + "".join(dict.fromkeys(each.swapcase() for each in ranges)) + "]"
    return f"[{part.lower()}{part.upper()}]" if re.fullmatch(r"[A-Za-z]", part) else part


def _checked(path: PathOfOurs) -> PathOfOurs:
    for each in filter(None, (path.text, path.regex)):
        patterns.pattern(each)
    return path
