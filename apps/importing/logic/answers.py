"""Answers to questions about a host or a path."""

from __future__ import annotations

import re

from apps.importing.logic.formulas import Atom


def about_host(atom: Atom, host: str) -> bool:
    """Whether the host (lower case, without port) is one of those that are asked for."""
    if atom.match == "dom":
        return any(f".{value.strip('.')}." in f".{host}." for value in atom.values)
    if atom.match == "label":
        return host.partition(".")[2] in atom.values
    return about_text(atom, host)


def about_path(atom: Atom, path: str) -> bool:
    """Whether the path (without query) is one of those that are asked for."""
    values = tuple(value.lower() for value in atom.values) if atom.ignore_case else atom.values
    text = path.lower() if atom.ignore_case else path
    if atom.match == "segment":
        return any(f"{text}/".startswith(f"/{value}/") for value in values)
    if atom.match == "dir":
        return any(f"/{value.strip('/')}/" in f"{text}/" for value in values)
    if atom.match == "dom":
        return any(value in re.split(r"[/?.:]", text) for value in values)
    return about_text(atom, path)


def about_text(atom: Atom, text: str) -> bool:
    """Whether the text is one of those that are asked for."""
    if atom.match == "found":
        return True
    if atom.match == "reg":
        return any(_search(value, text, ignore_case=atom.ignore_case) for value in atom.values)
    values = [value.lower() for value in atom.values] if atom.ignore_case else list(atom.values)
    text = text.lower() if atom.ignore_case else text
    if atom.match == "beg":
        return text.startswith(tuple(values))
    if atom.match == "end":
        return text.endswith(tuple(values))
    if atom.match == "sub":
        return any(value in text for value in values)
    return text in values


def _search(expression: str, text: str, *, ignore_case: bool) -> bool:
    try:
        return re.search(expression, text, re.IGNORECASE if ignore_case else 0) is not None
    except re.error:
        return False
