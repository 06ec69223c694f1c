"""The grammar of what is asked of clients' certificates, and what several of these must be together."""

from __future__ import annotations

import re
from collections.abc import Iterable

from apps.compiler.grammar import GrammarError
from apps.compiler.model.listener_options import ClientCertificates

MAX_CRL = 256 * 1024
MOST_ENTRIES = 16
MOST_HOSTNAMES = 200
# Names of headers that begin so are dropped from requests of clients.
HEADERS = "x-client-cert-"

_LISTS = re.compile(r"(?:-----BEGIN X509 CRL-----\n(?:[A-Za-z0-9+/]{1,76}={0,2}\n)+-----END X509 CRL-----\n)+")


def revocation_lists(value: object) -> str:
    """Revocation lists in PEM, nothing else in between, at most 256 kB."""
    text = value if isinstance(value, str) and len(value) <= MAX_CRL else ""
    if _LISTS.fullmatch(text):
        return text
    raise GrammarError("pem", f"Paste only X509 CRL blocks in PEM, at most {MAX_CRL} characters.")


def without_default(entries: Iterable[ClientCertificates], default: object) -> None:
    """Whoever asks for an unknown name must not be judged by the authorities of another one."""
    if default is not None and any(entry.hostnames for entry in entries):
        sentence = "Leave default_certificate out, or use one entry for all clients of the listener."
        raise GrammarError("default_certificate", sentence)


def distinct(entries: Iterable[ClientCertificates]) -> None:
    """Each hostname stands in one entry, and only one entry is for all others."""
    seen: set[str] = set()
    for entry in entries:
        for name in entry.hostnames or ("",):
            if name in seen:
                what = f"{name} in one entry only" if name else "hostnames in all entries but one"
                raise GrammarError("twice", f"Name {what}; otherwise it is not clear which authorities apply.")
            seen.add(name)
