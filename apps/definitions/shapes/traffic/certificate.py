"""The shape of a Certificate: a PEM chain, and its key, which no document shows again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.compiler.grammar import MAX_PEM, GrammarError
from apps.definitions.shapes.base.shape import About, Shape
from apps.definitions.shapes.base.words import text
from apps.definitions.values.certificates import canonical_pem


def _pem_text(value: object) -> str:
    pem = canonical_pem(value) if isinstance(value, str) else ""
    if not isinstance(value, str) or len(value) > MAX_PEM or not pem.isascii():
        raise GrammarError("pem", f"Paste PEM text of at most {MAX_PEM} characters.")
    return pem


PEM = text(_pem_text, "PEM text", MAX_PEM)


@dataclass(frozen=True, slots=True)
class CertificateSpec(Shape):
    """A PEM chain and its key; the key is never shown, and may be left out when the stored one still fits."""

    chain: Annotated[
        str,
        PEM,
        About(
            "PEM: the certificate first, then the intermediate certificates.",
            "Chain",
            example="-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n",
        ),
    ]
    key: Annotated[
        str | None,
        PEM,
        About(
            "Unencrypted PEM. It is sealed when saved and never shown again, not even after an error in this form.",
            "Private key",
            secret=True,
        ),
    ] = None
