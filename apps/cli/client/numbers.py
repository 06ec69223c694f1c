"""Numbers among the words of a command."""

from __future__ import annotations

import argparse
import re


def number(text: str) -> int:
    """A whole number that an object can have as its id."""
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 413")
    return int(text)
