"""The shape of a CertificateAuthority: who issues automatic certificates by ACME (RFC 8555), and our account there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from apps.compiler.grammar import MAX_PEM, GrammarError
from apps.core.called_urls import Refused, read_url
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import SORTED, About, Check, Data, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, at_most, matching, text, whole
from apps.definitions.values.authorities import complaint_about_authorities
from apps.definitions.values.certificates import canonical_pem

_MAIL = r"[A-Za-z0-9._%+'-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
_mail = matching(_MAIL, "email", "Write an e-mail address such as ops@example.com.", 254)
_key_id = matching(r"[!-~]{1,256}", "key_id", "Paste the key ID: 1 to 256 printable characters, without blanks.", 256)
_hmac = matching(r"[A-Za-z0-9_-]{20,512}=*", "hmac_key", "Paste the HMAC key as the authority gave it (base64url).")
_profile = matching(
    r"[a-z0-9][a-z0-9_-]{0,62}", "profile", "Write a profile that the authority offers, such as shortlived.", 63
)


def _url(value: object) -> str:
    text_ = value if isinstance(value, str) else ""
    try:
        read_url(text_)
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return text_


def _authorities(value: object) -> str:
    pem = canonical_pem(value) if isinstance(value, str) else ""
    if not pem.isascii() or not pem or len(pem) > MAX_PEM:
        raise GrammarError("pem", f"Paste PEM text of at most {MAX_PEM} characters.")
    return pem


def _takes(value: object, _: Data) -> None:
    complaint = complaint_about_authorities(str(value)) if value else None
    if complaint:
        raise GrammarError(*complaint)


@dataclass(frozen=True, slots=True)
class CertificateAuthoritySpec(Shape):
    """Who issues automatic certificates by ACME, and our account there; the account's key is made and kept sealed."""

    directory_url: Annotated[
        str,
        text(_url, "an https URL", 2048),
        About(
            "The ACME directory of the authority.",
            "Directory",
            "https, as the authority documents it.",
            "https://acme-v02.api.letsencrypt.org/directory",
        ),
    ]
    position: Annotated[
        int, whole(1, 100), About("The lowest is asked first; after two failures, the next one.", "Position")
    ] = 10
    terms_agreed: Annotated[
        Boolean,
        About("You agree to the terms of service that the authority publishes in its directory.", "Terms agreed"),
    ] = False
    contacts: Annotated[
        tuple[Annotated[str, text(_mail, "an e-mail address", 254)], ...],
        at_most(5, "contacts"),
        Distinct(),
        SORTED,
        About("Where the authority writes to.", "Contacts", "E-mail addresses.", "ops@example.com"),
    ] = ()
    external_key_id: Annotated[
        str,
        text(_key_id, "a key ID", 256, blank=True),
        About("External account binding: the key ID that the authority gave you.", "External key ID", ""),
    ] = ""
    external_hmac_key: Annotated[
        Annotated[str, text(_hmac, "base64url", 516)] | None,
        About(
            "External account binding: the HMAC key, as base64url. It is sealed when saved and never shown again; "
            "leave it out to keep the stored one.",
            "External HMAC key",
            secret=True,
        ),
    ] = None
    trusted_ca: Annotated[
        str,
        text(_authorities, "PEM text", MAX_PEM, blank=True),
        Check(_takes),
        About(
            "PEM: who must have signed the certificate of the directory's server. Default: whom this machine trusts.",
            "Trusted authorities",
            "Only for a private authority.",
        ),
    ] = ""
    profile: Annotated[
        str,
        text(_profile, "a profile", 63, blank=True),
        About("The profile to order, such as shortlived. Default: the authority's own.", "Profile", ""),
    ] = ""
    for_customers: Annotated[Boolean, About("Customers' certificates are ordered here as well.", "For customers")] = (
        True
    )

    def contradictions(self) -> Iterator[FieldError]:
        """A key without its name binds nothing."""
        if self.external_hmac_key and not self.external_key_id:
            yield FieldError("/external_key_id", "missing", "Fill in the key ID that belongs to the HMAC key.")
