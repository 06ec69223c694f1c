"""One criterion of an ACL while it is read: what is looked at, with which flags and values; how both are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from apps.importing.haproxy.criteria.samples import Sample


@dataclass(slots=True)
class Asked:
    """One criterion while it is read: what is looked at, and the flags and values behind it."""

    sample: Sample
    match: str
    values: list[str]
    ignore_case: bool = False


def cuts_port(converter: tuple[str, tuple[str, ...]]) -> bool:
    """Whether a converter takes the port of a host away, and nothing else."""
    name, args = converter
    if name == "regsub":
        return len(args) > 0 and args[0].startswith(":") and not any(args[1:2])
    return name in ("field", "word") and args == ("1", ":")


def cut_off(args: tuple[str, ...]) -> str:
    r"""The text that `regsub(^www\.,)` takes away from the beginning; empty for other expressions."""
    text = args[0].removeprefix("^").replace("\\.", ".") if args and not any(args[1:2]) else ""
    return text.lower() if args and args[0].startswith("^") and re.fullmatch(r"[A-Za-z0-9.-]+", text) else ""


def argument(asked: Asked) -> str:
    return asked.sample.args[0] if asked.sample.args else ""


def said(asked: Asked) -> str:
    args = f"({','.join(asked.sample.args)})" if asked.sample.args else ""
    converters = "".join(f",{name}" for name in asked.sample.converter_names)
    match = f" -m {asked.match}" if asked.match else ""
    return f"{asked.sample.fetch}{args}{converters}{match} {' '.join(asked.values[:3])}".strip()


def constant_matches(match: str, constant: str, value: str) -> bool:
    compared: dict[str, Callable[[], bool]] = {
        "beg": lambda: constant.startswith(value),
        "end": lambda: constant.endswith(value),
        "sub": lambda: value in constant,
        "reg": lambda: re.search(value, constant) is not None,
    }
    return compared.get(match, lambda: constant == value)()
