"""A machine with a token becomes a node: the token is claimed, the node stored, its key signed, in one transaction.

What dies before the commit leaves nothing, and the token can be used again. What dies after it is asked again by the
agent with the same key, which gets the same certificate; another key finds the token used.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace

from django.db import transaction

from apps.accounts.actors import Actor, platform_actor
from apps.accounts.models import FailedSignIn
from apps.accounts.sign_in import limits
from apps.audit import services as audit
from apps.compiler.address_spelling import spelled
from apps.core.clock import now
from apps.core.errors import FieldError, Forbidden, Invalid, Unavailable
from apps.definitions.services import save_object
from apps.enrolment.tokens import digest_of
from apps.fleet import pki
from apps.fleet.certificates import authorities
from apps.fleet.models import EnrolmentToken, Node

TOO_MANY = "Too many tries with tokens that are not valid. Wait fifteen minutes."
UNKNOWN = "This token is unknown. Make a new one in the console, and copy it whole."
EXPIRED = "This token has expired: tokens are valid for 15 minutes. Make a new one."
USED = "This token was used already, by another key. Make a new one for each machine."
WAIT_S = 30


class TooManyTries(Unavailable):
    """Whoever guesses waits."""

    status = 429
    title = "Too many requests"


@dataclass(frozen=True, slots=True)
class Asked:
    """What an agent sends: its token, the request for its certificate (PEM), where it wants to be reached."""

    token: str
    request: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What it gets: its node as it is stored, its certificate and the authorities to believe (PEM)."""

    node: str
    fleet: str
    url: str
    address: str
    certificate: str
    authorities: str


def enrol(asked: Asked, seen_from: str) -> Enrolled:
    """Let a machine in; `seen_from` is its address as this console sees it.

    Raises TooManyTries, Forbidden with one of the sentences above, Invalid for a request or an address that is none,
    and what saving a Node raises.
    """
    digest = digest_of(asked.token)
    who, where = digest[:32], seen_from[:45]
    if not limits.take_try(kind=FailedSignIn.Kind.ENROL, username=who, address=where):
        raise TooManyTries(TOO_MANY, WAIT_S)
    asked = replace(asked, address=_address(asked.address or seen_from))
    try:
        key = pki.digest_of_key(pki.requested_key(asked.request.encode()))
    except ValueError as error:
        raise Invalid([FieldError("/request", "request", str(error))]) from None
    found = _claimed(asked, digest, key, seen_from)
    limits.forgive(kind=FailedSignIn.Kind.ENROL, username=who, address=where)
    return found


def claim(digest: str, key: str, seen_from: str) -> bool:
    """Use the token, if it can be used: one statement, so that of any number at once one gets it."""
    instant = now()
    free = EnrolmentToken.objects.filter(digest=digest, used_at=None, expires_at__gt=instant)
    return bool(free.update(used_at=instant, used_from=seen_from[:45], key=key))


@transaction.atomic
def _claimed(asked: Asked, digest: str, key: str, seen_from: str) -> Enrolled:
    claimed = claim(digest, key, seen_from)
    token = EnrolmentToken.objects.select_related("fleet", "certificate").filter(digest=digest).first()
    if token is None:
        raise Forbidden(UNKNOWN)
    if not claimed:
        return _again(token, key)
    actor = replace(platform_actor(), name=f"enrolment by {token.created_by}"[:150])
    node = _stored(actor, token, asked)
    token.certificate, given = authorities.sign(request=asked.request, node=node)
    token.save(update_fields=["certificate"])
    after = {"certificate": token.certificate.sha256, "from": seen_from}
    audit.record(actor=actor, action="enrol", kind="Node", object_id=node.pk, label=node.name, after=after)
    return _answer(node, token.certificate.text, given)


def _again(token: EnrolmentToken, key: str) -> Enrolled:
    """What the same key was answered before, if the token is used; else why not."""
    if token.used_at is None:
        raise Forbidden(EXPIRED)
    certificate = token.certificate
    usable = token.expires_at > now() and certificate is not None and certificate.revoked_at is None
    if not usable or certificate is None or certificate.node is None or token.key != key:
        raise Forbidden(USED)
    return _answer(certificate.node, certificate.text, authorities.bundle(authorities.believed()))


def _answer(node: Node, certificate: str, given: str) -> Enrolled:
    return Enrolled(node.name, node.fleet.name, node.url, node.address, certificate, given)


def _stored(actor: Actor, token: EnrolmentToken, asked: Asked) -> Node:
    """The node of the token, made or brought to where the machine is; one that is there already is not written."""
    host = f"[{asked.address}]" if ":" in asked.address else asked.address
    url = f"https://{host}:{asked.port}"
    row = Node.objects.select_related("fleet").filter(name=token.node_name).first()
    tags = token.tags if token.tags is not None else row.tags if row is not None else {}
    wanted = (token.fleet_id, url, asked.address, tags)
    if row is not None and (row.fleet_id, row.url, row.address, row.tags) == wanted:
        return row
    spec: dict[str, object] = {"fleet": token.fleet.name, "url": url, "address": asked.address, "tags": tags}
    if row is not None:
        spec["port_offset"] = row.port_offset
    save_object(actor=actor, kind="Node", name=token.node_name, spec=spec, reason="The machine was enrolled.")
    return Node.objects.select_related("fleet").get(name=token.node_name)


def _address(text: str) -> str:
    try:
        return spelled(ipaddress.ip_address(text))
    except ValueError:
        detail = "The console cannot see the address of this machine. Name it: enroll --address ADDRESS."
        raise Invalid([FieldError("/address", "address", detail)]) from None
