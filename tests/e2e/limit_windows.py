"""Limits whose windows are longer than those of the product, so that a slow machine counts within one."""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.bundle import Bundle
from apps.compiler.targets.haproxy.overflow.limits import LIMITS_MAP


def in_ten_seconds(bundle: Bundle) -> Bundle:
    """As many requests as else in one second are let through in ten: who counts them may take a while.

    In the rows of the map, `key <in 10 s>|<in 1 s>|…`, the two numbers are exchanged.
    """
    rows = (line.partition(" ") for line in bundle.files[LIMITS_MAP].decode().splitlines())
    words = ((key, *word.split("|", 2)) for key, _, word in rows)
    limits = "".join(f"{key} {short}|{long}|{rest}\n" for key, long, short, rest in words)
    return replace(bundle, files={**bundle.files, LIMITS_MAP: limits.encode()})
