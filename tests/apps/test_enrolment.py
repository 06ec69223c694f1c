"""A machine becomes a node by a token, once; its certificates are renewed, revoked, and go over to a new authority."""

from __future__ import annotations

import hashlib
import io
import re
from datetime import datetime, timedelta
from functools import partial

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import FailedSignIn
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid
from apps.core.secrets.sealing import unseal
from apps.definitions.services import delete_object, save_object
from apps.enrolment import enrolling, renewing, revoking, rotating, selectors
from apps.enrolment.enrolling import TooManyTries
from apps.enrolment.tokens import make_token
from apps.fleet import pki
from apps.fleet.certificates import authorities
from apps.fleet.certificates.trust import trust
from apps.fleet.models import Authority, EnrolmentToken, Node, NodeCertificate
from apps.observe.models import NodeReport
from tests.apps.at_once import at_once
from tests.apps.enrolment_env import Env, env, request
from tests.architecture.sources import ROOT

__all__ = ["env"]


def shows(node: Node, sha256: str) -> None:
    """The collector has just read the node, and this is the certificate that it showed."""
    ends_at = NodeCertificate.objects.get(sha256=sha256).ends_at
    NodeReport.objects.update_or_create(
        node=node, defaults={"seen_at": now(), "certificate_sha256": sha256, "certificate_ends_at": ends_at}
    )


def sha256_of(certificate: str) -> str:
    return pki.fingerprint(x509.load_pem_x509_certificate(certificate.encode()))


def test_a_token_makes_a_machine_a_node_that_is_reached_where_it_came_from(env: Env) -> None:
    found = env.enrol(env.token())
    node = Node.objects.get(name="us-1")
    assert (node.fleet, node.url, node.address) == (env.fleet, "https://192.0.2.7:8443", "192.0.2.7")
    certificate = x509.load_pem_x509_certificate(found.certificate.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["us-1"]
    assert certificate.not_valid_after_utc - now() < timedelta(days=30)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(found.authorities.encode()))
    said = list(Entry.objects.filter(action="enrol").values_list("actor", "object_label"))
    assert said == [("enrolment by somebody of operator", "us-1")]


def test_a_node_gets_the_tags_of_its_token_and_keeps_them_where_a_token_has_none(env: Env) -> None:
    tagged = make_token(actor=env.operator, node="us-1", fleet="here", tags={"rack": "a1"})[1]
    env.enrol(tagged)
    assert Node.objects.get(name="us-1").tags == {"rack": "a1"}
    env.enrol(env.token(), address="192.0.2.8")
    assert Node.objects.get(name="us-1").tags == {"rack": "a1"}
    env.enrol(make_token(actor=env.operator, node="us-1", fleet="here", tags={})[1])
    assert Node.objects.get(name="us-1").tags == {}


@pytest.mark.parametrize("tags", ["rack=a1", ["rack"], {"rack": 1}, {"Rack": "a1"}, {"rack": "a 1"}, {"rack": ""}, 7])
def test_tags_that_are_none_make_no_token(env: Env, tags: object) -> None:
    with pytest.raises(Invalid) as refused:
        make_token(actor=env.operator, node="us-1", fleet="here", tags=tags)
    assert refused.value.field_errors
    assert all(error.pointer.startswith("/tags") for error in refused.value.field_errors)
    assert not EnrolmentToken.objects.exists()


def test_a_tag_alone_reaches_no_node_and_a_move_reaches_all(env: Env) -> None:
    def save(**spec: object) -> int:
        save_object(
            actor=env.operator, kind="Node", name="us-1", spec={"fleet": "here", "url": "unix:///a.sock"} | spec
        )
        env.fleet.refresh_from_db()
        return env.fleet.desired_generation

    first = save()
    assert save(tags={"rack": "a1"}) == first
    assert save(tags={"rack": "a1"}, port_offset=7) > first


def test_the_role_of_the_agent_finds_the_token_in_what_the_command_prints(env: Env) -> None:
    role = (ROOT / "deploy/ansible/roles/spillway_agent/tasks/enrol.yml").read_text()
    form = re.search(r"spillway_agent_made\.stdout .* regex_search\('(.+?)'\)", role)
    assert form is not None
    printed = io.StringIO()
    call_command("nodes", "enrol", "us-1", "--fleet", "here", stdout=printed)
    found = re.search(form[1], printed.getvalue())
    assert found is not None
    assert env.enrol(found[0]).node == "us-1"


def test_nothing_of_a_token_is_stored_but_a_digest(env: Env) -> None:
    token = env.token()
    secret = token.rpartition("_")[2] if "_" not in token[-43:] else token[-43:]
    row = EnrolmentToken.objects.get()
    assert row.digest == hashlib.sha256(secret.encode()).hexdigest()
    stored = " ".join(str(value) for value in EnrolmentToken.objects.values().get().values())
    assert secret not in stored
    assert secret not in str(list(Entry.objects.values_list("after", flat=True)))


def test_the_keys_of_the_authority_are_sealed(env: Env) -> None:
    env.enrol(env.token())
    row = Authority.objects.get()
    for sealed in (row.sealed_key, row.sealed_client):
        assert b"PRIVATE KEY" not in bytes(sealed)
        assert b"PRIVATE KEY" in unseal(sealed)


def test_a_token_is_used_once_by_one_key(env: Env) -> None:
    token = env.token()
    asked = request()
    first = env.enrol(token, asked)
    assert env.enrol(token, asked) == first, "its answer was lost on the way"
    with pytest.raises(Forbidden, match="used already"):
        env.enrol(token)
    assert NodeCertificate.objects.count() == 1


def test_tokens_that_ended_or_never_were_get_nobody_in(env: Env) -> None:
    token = env.token()
    EnrolmentToken.objects.update(expires_at=now() - timedelta(seconds=1))
    with pytest.raises(Forbidden, match="expired"):
        env.enrol(token)
    for unknown in (token[:-1] + ("A" if token[-1] != "A" else "B"), "sne_", "", "é" * 91):
        with pytest.raises(Forbidden, match="unknown"):
            env.enrol(unknown)
    assert not Node.objects.exists()


def test_whoever_guesses_tokens_waits_and_whoever_has_them_does_not(env: Env) -> None:
    wrong = [FailedSignIn(kind="enrol", username=f"wrong {number}", address="192.0.2.7") for number in range(98)]
    FailedSignIn.objects.bulk_create(wrong)
    for number in (1, 2, 3):  # those who were right do not count
        env.enrol(env.token(f"n-{number}"), address=f"192.0.2.{100 + number}")
    for number in (98, 99):
        with pytest.raises(Forbidden):
            env.enrol(f"wrong {number}")
    token = env.token("late")
    with pytest.raises(TooManyTries):
        env.enrol(token)
    assert env.enrol(token, seen_from="192.0.2.8").node == "late"


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_of_many_that_come_at_once_with_one_token_one_gets_in(env: Env) -> None:
    token = env.token()

    def attempt(asked: str) -> bool:
        try:
            env.enrol(token, asked)
        except Forbidden:
            return False
        return True

    assert sum(at_once(*(partial(attempt, request()) for _ in range(4)))) == 1
    assert NodeCertificate.objects.count() == 1


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_without_the_claim_several_get_in(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(digest: str, key: str, seen_from: str) -> bool:
        return EnrolmentToken.objects.filter(digest=digest, expires_at__gt=now()).exists()

    monkeypatch.setattr(enrolling, "claim", looked)
    token = env.token()
    for _ in range(2):  # one after the other: at once, the node that both write would stop one of them
        env.enrol(token, request())
    assert NodeCertificate.objects.count() == 2


def test_what_fails_in_between_leaves_the_token_as_it_was(env: Env) -> None:
    spec = {"fleet": "here", "url": "https://192.0.2.7:8443"}
    save_object(actor=env.operator, kind="Node", name="other", spec=spec)
    token = env.token()
    with pytest.raises(Invalid, match="already has this URL"):
        env.enrol(token)
    assert not NodeCertificate.objects.exists()
    assert env.enrol(token, address="192.0.2.9").url == "https://192.0.2.9:8443"


def test_a_node_that_is_there_is_bound_and_one_of_another_fleet_is_not(env: Env) -> None:
    spec = {"fleet": "here", "url": "https://192.0.2.1:9440", "port_offset": 7}
    save_object(actor=env.operator, kind="Node", name="us-1", spec=spec)
    save_object(actor=env.operator, kind="Fleet", name="there", spec={"region": "here", "peer_port": 9701})
    with pytest.raises(Invalid, match="is in fleet here"):
        make_token(actor=env.operator, node="us-1", fleet="there")
    assert env.enrol(env.token()).url == "https://192.0.2.7:8443"
    assert Node.objects.get(name="us-1").port_offset == 7


def test_a_request_must_be_signed_by_its_own_key(env: Env) -> None:
    token = env.token()
    other = x509.load_pem_x509_csr(request().encode())
    forged = bytearray(other.public_bytes(serialization.Encoding.DER))
    forged[-1] ^= 1
    try:
        text = x509.load_der_x509_csr(bytes(forged)).public_bytes(serialization.Encoding.PEM).decode()
    except ValueError:
        text = "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"
    for asked in (text, "no request", "x" * 9000):
        with pytest.raises(Invalid):
            env.enrol(token, asked)
    assert env.enrol(token).node == "us-1"


def test_tokens_are_made_by_operators_of_a_console_that_can_be_pinned(
    env: Env, acme: Actor, settings: Settings
) -> None:
    with pytest.raises(Forbidden):
        make_token(actor=acme, node="us-1", fleet="here")
    env.token()
    assert not selectors.tokens(acme).exists()
    assert selectors.believed(acme) == []
    with pytest.raises(Invalid) as raised:
        make_token(actor=env.operator, node="Not a name", fleet="nowhere")
    assert [each.pointer for each in raised.value.field_errors] == ["/node", "/fleet"]
    settings.CONSOLE_CA_FILE = ""
    with pytest.raises(Conflict, match="SPILLWAY_CONSOLE_CA"):
        env.token()


def test_certificates_of_a_node_that_is_revoked_or_deleted_count_no_more(env: Env) -> None:
    for end in (
        lambda: revoking.revoke_node(actor=env.operator, name="us-1"),
        lambda: delete_object(actor=env.operator, kind="Node", name="us-1"),
    ):
        certificate = sha256_of(env.enrol(env.token()).certificate)
        waiting = env.token()
        assert certificate not in trust().revoked
        end()
        assert certificate in trust().revoked
        with pytest.raises(Forbidden):  # a token that was made before would let it in again
            env.enrol(waiting)


def test_a_certificate_of_another_authority_is_revoked_by_what_the_node_showed(env: Env) -> None:
    save_object(actor=env.operator, kind="Node", name="old", spec={"fleet": "here", "url": "https://192.0.2.1:9440"})
    with pytest.raises(Conflict, match="no valid certificate"):
        revoking.revoke_node(actor=env.operator, name="old")
    NodeReport.objects.create(node=Node.objects.get(name="old"), seen_at=now(), certificate_sha256="ab" * 32)
    revoking.revoke_node(actor=env.operator, name="old")
    assert "ab" * 32 in trust().revoked


def test_what_is_used_is_due_with_a_third_of_its_life_left_and_rests_after_a_failure(env: Env) -> None:
    certificate = sha256_of(env.enrol(env.token(), address="127.0.0.1").certificate)
    node, instant = Node.objects.get(), now()
    assert not renewing.due(instant).exists()
    NodeCertificate.objects.update(ends_at=instant + timedelta(days=9))
    assert not renewing.due(instant).exists(), "nobody has seen it in use"
    shows(node, certificate)
    assert renewing.due(instant).exists()
    assert renewing.renew() == 0, "nobody answers there"
    assert not renewing.due(now()).exists()
    assert renewing.due(now() + timedelta(seconds=59)).count() == 0
    NodeReport.objects.update(seen_at=now() + timedelta(seconds=61))
    assert renewing.due(now() + timedelta(seconds=61)).exists()
    revoking.revoke_node(actor=env.operator, name="us-1")
    assert not renewing.due(now() + timedelta(seconds=61)).exists(), "who is revoked is not renewed"


@pytest.mark.parametrize("end", ["revoke", "delete"])
def test_a_node_that_is_revoked_while_it_is_asked_gets_no_new_certificate(
    env: Env, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    certificate = sha256_of(env.enrol(env.token(), address="127.0.0.1").certificate)
    shows(Node.objects.get(), certificate)
    NodeCertificate.objects.update(ends_at=now() + timedelta(days=9))
    claim, given = renewing._claim, list[str]()

    def ended_meanwhile(row: NodeCertificate, instant: datetime) -> bool:
        claimed = claim(row, instant)
        if end == "revoke":
            revoking.revoke_node(actor=env.operator, name="us-1")
        else:
            delete_object(actor=env.operator, kind="Node", name="us-1")
        return claimed

    monkeypatch.setattr(renewing, "_claim", ended_meanwhile)
    monkeypatch.setattr(renewing, "_request", lambda _target: request())
    monkeypatch.setattr(renewing, "_give", lambda certificate, *_: given.append(certificate))
    renewing.renew()
    assert not NodeCertificate.objects.filter(revoked_at=None).exists()
    assert not given


@pytest.mark.usefixtures("env")
@pytest.mark.parametrize("body", [b"[" * 10_000, b"{", b"[]"])
def test_what_is_no_json_object_lets_nobody_in_and_is_nobodys_mistake_but_theirs(body: bytes) -> None:
    assert Client().post("/enrol", body, content_type="application/json").status_code == 400


def test_both_authorities_are_believed_until_every_node_has_gone_over(env: Env) -> None:
    for number, name in enumerate(("us-1", "us-2")):
        found = env.enrol(env.token(name), address=f"192.0.2.{10 + number}")
        shows(Node.objects.get(name=name), sha256_of(found.certificate))
    old = Authority.objects.get()
    new = rotating.rotate(actor=env.operator)
    with pytest.raises(Conflict, match="under way"):
        rotating.rotate(actor=env.operator)
    assert trust().believed == old.certificate + new.certificate
    assert [(each.row, each.signs, each.nodes) for each in selectors.believed(env.operator)] == [
        (old, False, 2),
        (new, True, 0),
    ]
    assert renewing.due(now()).count() == 0, "not every console knows the new one"
    Authority.objects.update(created_at=now() - timedelta(minutes=1))
    old, new = Authority.objects.order_by("pk")
    assert renewing.due(now()).count() == 2
    for left, node in ((1, "us-1"), (0, "us-2")):
        rotating.finish()
        assert old in authorities.believed(), "a node still needs it"
        row, believed = authorities.sign(request=request(), node=Node.objects.get(name=node))
        assert believed == old.certificate + new.certificate
        assert rotating.still_on(old) == left + 1, "nobody has seen the node with it yet"
        shows(Node.objects.get(name=node), row.sha256)
        assert rotating.still_on(old) == left
    rotating.finish()
    assert authorities.believed() == [new]
    assert renewing.due(now()).count() == 2, "nodes are told to believe the new one alone"
    with pytest.raises(Conflict):
        rotating.retire(actor=env.operator, authority_id=new.pk)


def test_consoles_show_the_certificate_of_the_oldest_authority_and_renew_it(env: Env) -> None:
    env.enrol(env.token())
    old = Authority.objects.get()
    rotating.rotate(actor=env.operator)
    shown = trust().client
    assert shown is not None
    parsed = x509.load_pem_x509_certificate(shown.certificate.encode())
    parsed.verify_directly_issued_by(x509.load_pem_x509_certificate(old.certificate.encode()))
    key = serialization.load_pem_private_key(shown.key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.public_key() == parsed.public_key()
    assert trust().client == shown
    Authority.objects.update(client_ends_at=F("client_ends_at") - timedelta(days=21))
    renewed = trust().client
    assert renewed != shown
    assert trust().client == renewed
