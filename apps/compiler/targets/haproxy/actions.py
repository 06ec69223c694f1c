"""What happens to a route's requests, in one word without spaces: an entry of the map of actions (maps.py)."""

from __future__ import annotations

from itertools import accumulate

from apps.compiler.model.shared import Redirect, Route, WeightedPool

SPLIT = "split|"
REDIRECT = "redirect|"
SHARES = 1000
MAX_POOLS = 8
LENGTHS = "abcdefghijk"
"""A letter for each power of two up to the length of the longest path."""
IS_REDIRECT = ("{", "var(txn.action)", "-m", "beg", REDIRECT, "}")


def action_of(route: Route) -> str:
    """What happens to the route's requests, in one word without spaces."""
    if route.redirect is not None:
        return _redirect_action(route, route.redirect)
    if route.fixed_response is not None:
        return route.id
    shares = [share for share in route.pools if share.weight > 0]
    return shares[0].pool_id if len(shares) == 1 else _split_action(shares)


def _split_action(shares: list[WeightedPool]) -> str:
    """`split|<threshold>|<pool>|…`: a number below SHARES is drawn and the first higher threshold wins."""
    whole = sum(share.weight for share in shares)
    sums = accumulate(share.weight for share in shares)
    thresholds = [_share_of(reached, whole) for reached in sums]
    return SPLIT + "|".join(f"{limit}|{share.pool_id}" for limit, share in zip(thresholds, shares, strict=True))


def _share_of(part: int, whole: int) -> int:
    """`part` of `whole` in thousandths, rounded half up in integers so that every machine agrees."""
    return (2 * part * SHARES + whole) // (2 * whole)


def _redirect_action(route: Route, redirect: Redirect) -> str:
    """`redirect|<code>|<scheme>|<host>|<path>|<q to keep the query>`; empty parts come from the request.

    Where any is said, `|<port>|<length of the prefix that the path replaces>|<query to add>` follow. The length is a
    hyphen and the letters of the powers of two that it is the sum of: `-ac` is 5.
    """
    path = redirect.path or (redirect.prefix or "").rstrip("/")
    parts = (str(redirect.code), redirect.scheme or "", redirect.host or "", path, "q" if redirect.keep_query else "")
    length = "" if redirect.prefix is None else _letters_of(rewrite_length(route))
    more = (str(redirect.port or ""), length, redirect.query or "")
    return REDIRECT + "|".join((*parts, *more) if any(more) else parts)


def _letters_of(length: int) -> str:
    return "-" + "".join(letter for power, letter in enumerate(LENGTHS) if length & 1 << power)


def rewrite_length(route: Route) -> int:
    """How many characters of the path the rewrite replaces."""
    return len(route.path.rstrip("/"))
