"""Asks the world whether a hostname is the claimant's: a TXT record in its zone, or a token on its web server.

Nothing here touches the database, so a slow name server holds no transaction open.
"""

from __future__ import annotations

from dataclasses import dataclass

import dns.exception
import dns.rdatatype
import dns.resolver

from apps.accounts.hostnames.resolving import resolver
from apps.accounts.models import Hostname
from apps.compiler.matching.hosts import domain_of, is_wildcard
from apps.core.called_urls import Refused
from apps.core.outbound import Unreachable, fetch

RECORD = "_spillway-challenge"
PATH = "/.well-known/spillway-challenge/"
SECONDS = 5.0
MAX_BODY = 4096


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: how the name is verified (empty: not), and a sentence for the claimant."""

    verification: str
    message: str


def txt_name(hostname: str) -> str:
    """Where the TXT record belongs; that of a wildcard stands at its domain."""
    return f"{RECORD}.{domain_of(hostname)}"


def txt_value(challenge: str) -> str:
    """What the TXT record must say."""
    return f"spillway={challenge}"


def http_url(hostname: str, challenge: str) -> str:
    """Where a web server of the name must answer with the challenge; empty for a wildcard, which has no one server."""
    return "" if is_wildcard(hostname) else f"http://{hostname}{PATH}{challenge}"


def look(claim: Hostname) -> Finding:
    """Ask for the TXT record, then (not for wildcards) the web server; both answers are told when neither verifies."""
    by_dns = _look_in_dns(claim)
    if by_dns.verification or is_wildcard(claim.name):
        return by_dns
    by_http = _look_by_http(claim)
    return by_http if by_http.verification else Finding("", f"{by_dns.message} {by_http.message}")


def _look_in_dns(claim: Hostname) -> Finding:
    name = txt_name(claim.name)
    try:
        answer = resolver().resolve(name, "TXT", lifetime=SECONDS, raise_on_no_answer=False, search=False)
    except dns.resolver.NXDOMAIN:
        return Finding("", f"There is no TXT record at {name} yet.")
    except (dns.exception.DNSException, OSError):
        return Finding("", f"The name servers of {name} did not answer.")
    found = [b"".join(record.strings).decode("ascii", "replace") for record in answer.rrset or ()]
    if txt_value(claim.challenge) in found:
        return Finding(Hostname.Verification.DNS, f"The TXT record at {name} is there.")
    if found:
        return Finding("", f"The TXT record at {name} has another value.")
    return Finding("", f"There is no TXT record at {name} yet.")


def _look_by_http(claim: Hostname) -> Finding:
    try:
        answer = fetch(http_url(claim.name, claim.challenge), timeout=SECONDS, limit=MAX_BODY, schemes=("http",))
    except (Refused, Unreachable) as error:
        return Finding("", f"By HTTP: {error}")
    if answer.status == 200 and answer.body.strip() == claim.challenge.encode():
        return Finding(Hostname.Verification.HTTP, "The web server returns the token.")
    if answer.status == 200:
        return Finding("", "By HTTP: the response is not the token.")
    return Finding("", f"By HTTP: the response is {answer.status}.")
