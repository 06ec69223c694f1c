"""Order: which of two candidates of one host comes first here, and whether they meet at all."""

from __future__ import annotations

from apps.adoption.candidates import Candidate


def shadows(earlier: Candidate, later: Candidate) -> bool:
    """Whether the earlier one takes every request of the later one."""
    same = later.exact and later.path == earlier.path
    within = same if earlier.exact else _below(later.path, earlier.path)
    methods = not earlier.methods or (bool(later.methods) and set(later.methods) <= set(earlier.methods))
    return within and methods and set(earlier.headers) <= set(later.headers)


def covers(wildcard: str, host: str) -> bool:
    """Whether a cloud's wildcard, which stands for any number of labels, takes another host, or wildcard, as well."""
    return wildcard.startswith("*.") and host != wildcard and host.endswith(wildcard[1:])


def rank(candidate: Candidate) -> tuple[bool, int, bool, int]:
    """As routing.rank, within one host: the smaller comes first."""
    return (not candidate.exact, -len(candidate.path), not candidate.methods, -len(candidate.headers))


def overlap(one: Candidate, other: Candidate) -> bool:
    """Whether a request may fit both."""
    if one.methods and other.methods and not set(one.methods) & set(other.methods):
        return False
    if one.exact and other.exact:
        return one.path == other.path
    wide, narrow = sorted((one, other), key=lambda each: (each.exact, len(each.path)))
    return _below(narrow.path, wide.path)


def _below(path: str, prefix: str) -> bool:
    return (path.rstrip("/") + "/").startswith(prefix.rstrip("/") + "/")
