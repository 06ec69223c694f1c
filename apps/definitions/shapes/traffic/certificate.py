"""The shape of a Certificate: a PEM chain with its key, which no document shows again, or names to order one for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from apps.compiler.grammar import MAX_PEM, GrammarError
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import SORTED, About, Data, Distinct, Shape
from apps.definitions.shapes.base.words import Hostname, at_most, text
from apps.definitions.values.certificates import canonical_pem


def _pem_text(value: object) -> str:
    pem = canonical_pem(value) if isinstance(value, str) else ""
    if not isinstance(value, str) or len(value) > MAX_PEM or not pem.isascii():
        raise GrammarError("pem", f"Paste PEM text of at most {MAX_PEM} characters.")
    return pem


PEM = text(_pem_text, "PEM text", MAX_PEM)


MOST_NAMES = 100


def _ordered(name: str) -> bool:
    """Whether authorities issue for such a name: a host, or `*.` and a host."""
    return not name.startswith("**.") and name.removeprefix("*.").count(".") >= 1


@dataclass(frozen=True, slots=True)
class AutomaticSpec(Shape):
    """Names for which a certificate is ordered by ACME and renewed."""

    hostnames: Annotated[
        tuple[Hostname, ...],
        at_most(MOST_NAMES, "hostnames in one certificate"),
        Distinct(),
        SORTED,
        About(
            "Hostnames that the account has verified; those of an operator need no claim. `*.` needs a zone.",
            "Hostnames",
            f"At most {MOST_NAMES}.",
        ),
    ]

    def contradictions(self) -> Iterator[FieldError]:
        """What no authority issues for."""
        if not self.hostnames:
            yield FieldError("/hostnames", "missing", "Name at least one hostname.")
        for index, name in enumerate(self.hostnames):
            if not _ordered(name):
                detail = (
                    "Name a host such as shop.example.com, or *. and a domain: authorities issue for no other name."
                )
                yield FieldError(f"/hostnames/{index}", "hostname", detail)


@dataclass(frozen=True, slots=True)
class CertificateSpec(Shape):
    """A PEM chain and its key, or the names of a certificate that is ordered and renewed by itself."""

    chain: Annotated[
        Annotated[str, PEM] | None,
        About(
            "PEM: the certificate first, then the intermediate certificates.",
            "Chain",
            example="-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n",
            absent_when_empty=True,
        ),
    ] = None
    key: Annotated[
        str | None,
        PEM,
        About(
            "Unencrypted PEM. It is sealed when saved and never shown again, not even after an error in this form.",
            "Private key",
            secret=True,
        ),
    ] = None
    automatic: Annotated[
        AutomaticSpec | None,
        About(
            "Instead of chain and key: Spillway orders the certificate by ACME, and renews it.",
            "Automatic",
            absent_when_empty=True,
        ),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> list[FieldError]:
        """One of the two ways."""
        if "automatic" not in sent and "chain" not in sent:
            detail = "Paste the chain, or name the hostnames of an automatic certificate."
            return [FieldError("/chain", "missing", detail)]
        both = [name for name in ("chain", "key") if name in sent] if "automatic" in sent else []
        return [FieldError(f"/{name}", "automatic", "Leave this out: the certificate is automatic.") for name in both]
