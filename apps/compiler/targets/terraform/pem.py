"""Certificates for Terraform: clouds want the certificate, those above it and the private key apart."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from apps.compiler.model.shared import Certificate
from apps.compiler.targets.terraform.expressions import key_variable

_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----\n[^-]+-----END \1-----\n")


@dataclass(frozen=True, slots=True)
class Parts:
    """A PEM by what clouds want apart: the certificate itself, those above it, the key."""

    body: str
    chain: str
    key: str


def parts_of(pem: str) -> Parts:
    """Split a chain with its key; the first certificate is the one that clients see (grammar.pem has been asked)."""
    blocks = [(match[1], match[0]) for match in _BLOCK.finditer(pem)]
    certificates = [text for kind, text in blocks if kind == "CERTIFICATE"]
    keys = [text for kind, text in blocks if kind != "CERTIFICATE"]
    return Parts(certificates[0], "".join(certificates[1:]), keys[0])


def secrets_of(certificates: Iterable[Certificate], variables: Collection[str]) -> dict[str, str]:
    """The values of a document's sensitive variables: private keys, which the document itself never carries.

    A certificate that the checks refuse has no variable.
    """
    return {name: parts_of(each.pem).key for each in certificates if (name := key_variable(each.id)) in variables}
