"""Where a redirect leads, made of parts of the request."""

from __future__ import annotations

from dataclasses import dataclass

HOST, PATH, QUERY = "\2", "\3", "\4"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a redirect leads. `host` holds HOST for that of the request (`www.` HOST, or HOST less `www.`).

    `before` is put before the path of the request, whose beginning `strip` is taken away; `path` replaces it. `slash`:
    one is put behind a path that has none.
    """

    scheme: str = ""
    host: str = ""
    drop_from_host: str = ""
    port: int = 0
    path: str = ""
    before: str = ""
    strip: str = ""
    keeps_path: bool = False
    keep_query: bool = False
    query: str = ""
    slash: bool = False
