"""Where in a YAML text the JSON pointer of an error points to, found by indentation alone."""

from __future__ import annotations

import re

_ITEM = re.compile(r"( *)- +")


def line_of(text: str, pointer: str) -> int | None:
    """The number (from 1) of the deepest line of the pointer's path that can be found, None when nothing can."""
    lines = text.split("\n")
    first, last, found = 0, len(lines), None
    for part in filter(None, pointer.split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        at = _item(lines, first, last, int(name)) if name.isdecimal() else _key(lines, first, last, name)
        if at is None:
            break
        found = at
        first, last = at if name.isdecimal() else at + 1, _end(lines, at, last)
    return None if found is None else found + 1


def _depth(line: str) -> int | None:
    """Columns before the text; None for blank lines and comments."""
    bare = line.lstrip(" ")
    return None if not bare.strip() or bare.startswith("#") else len(line) - len(bare)


def _key(lines: list[str], first: int, last: int, name: str) -> int | None:
    """The least indented line within that begins with the key, also behind the dash of an item or in `{…}`."""
    plain = re.compile(rf"""[ -]*["']?{re.escape(name)}["']?:(\s|$)""")
    inline = re.compile(rf"""[{{,]\s*["']?{re.escape(name)}["']?:\s""")
    found = [at for at in range(first, last) if _depth(lines[at]) is not None and plain.match(lines[at])]
    if found:
        return min(found, key=lambda at: (_column(lines[at]), at))
    # In flow style the key stands on the line of what holds it.
    return next((at for at in range(max(first - 1, 0), last) if inline.search(lines[at])), None)


def _column(line: str) -> int:
    dash = _ITEM.match(line)
    return dash.end() if dash else len(line) - len(line.lstrip(" "))


def _item(lines: list[str], first: int, last: int, number: int) -> int | None:
    """The line of the item with this number of the list that begins here."""
    starts = [(at, dash.end(1)) for at in range(first, last) if (dash := _ITEM.match(lines[at]))]
    if not starts:
        return None
    own = [at for at, depth in starts if depth == starts[0][1]]
    return own[number] if number < len(own) else None


def _end(lines: list[str], at: int, last: int) -> int:
    """The line after the block that begins at this one."""
    dash = _ITEM.match(lines[at])
    depth = dash.end(1) if dash else _depth(lines[at]) or 0
    for below in range(at + 1, last):
        here = _depth(lines[below])
        # A list may stand as deep as its key.
        if here is not None and (here < depth or (here == depth and (dash or not _ITEM.match(lines[below])))):
            return below
    return last
