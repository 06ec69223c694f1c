"""Words by which a client stays on its side of a split, and attributes of the cookie for it."""

from __future__ import annotations

from apps.compiler.grammar import one_of

STICK_BY = frozenset({"cookie", "address", "header"})
SAME_SITE = frozenset({"lax", "strict", "none"})
stick_by = one_of(sorted(STICK_BY))
same_site = one_of(sorted(SAME_SITE))  # whether requests from other sites carry a cookie
