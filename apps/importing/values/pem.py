"""Certificates and keys in the PEM texts of files and Secrets, without what stands around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)


def chain_in(text: str) -> str:
    """Every certificate; empty where there is none."""
    return "".join(block for kind, block in _blocks(text) if kind == "CERTIFICATE")


def key_in(text: str) -> str:
    """The first private key; empty where there is none."""
    return next((block for kind, block in _blocks(text) if kind.endswith("PRIVATE KEY")), "")


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    return ((found[1], found[0] + "\n") for found in _BLOCK.finditer(text))
