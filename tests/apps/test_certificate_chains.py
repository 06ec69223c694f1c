"""Every certificate of a chain is looked at before it is stored, and what is wrong is said by field."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import Certificate
from apps.definitions.services import save_object
from apps.definitions.values.certificates import MAX_KEY
from tests.conformance import certificate_cases as made


def field_errors(actor: Actor, chain: str, key: str) -> list[FieldError]:
    """What is said against the upload."""
    try:
        save_object(actor=actor, kind="Certificate", name="shop", spec={"chain": chain, "key": key})
    except Invalid as error:
        return list(error.field_errors)
    return []


def test_an_authority_that_nodes_do_not_take_is_refused_with_the_field_and_what_to_do(acme: Actor) -> None:
    found = field_errors(acme, *made.below("RSA 1024"))
    assert [(field_error.pointer, field_error.code) for field_error in found] == [("/spec/chain", "key_size")]
    assert found[0].detail == (
        "Certificate 2 of the chain has an RSA key of 1024 bits; get one with an RSA key of 2048 to 8192 bits, or an "
        "elliptic curve key on P-256, P-384 or P-521."
    )
    assert not Certificate.objects.exists()


def test_everything_that_is_wrong_is_said_at_once(acme: Actor) -> None:
    chain, key = made.alone("RSA 1024", "sha1")
    assert {field_error.code for field_error in field_errors(acme, chain, key)} == {"key_size", "signature_digest"}


def test_a_chain_whose_order_is_wrong_says_what_comes_first(acme: Actor) -> None:
    chain, key = made.with_a_stranger()
    assert [field_error.code for field_error in field_errors(acme, chain, key)] == ["chain_order"]


def test_a_certificate_that_demands_what_nodes_do_not_send_is_refused(acme: Actor) -> None:
    found = field_errors(acme, *made.must_staple())
    assert [(each.pointer, each.code) for each in found] == [("/spec/chain", "must_staple")]
    assert "request one without that extension" in found[0].detail
    assert field_errors(acme, *made.alone("P-256")) == []  # the control


def test_carriage_returns_and_a_byte_order_mark_are_not_stored(acme: Actor) -> None:
    chain, key = made.below("P-256")
    sent = ["\ufeff" + text.replace("\n", "\r\n") for text in (chain, key)]
    assert field_errors(acme, *sent) == []
    assert Certificate.objects.get().chain_pem == chain


@pytest.mark.parametrize("field", ["chain", "key"])
def test_text_that_is_no_pem_is_refused(acme: Actor, field: str) -> None:
    spec = dict(zip(("chain", "key"), made.below("P-256"), strict=True)) | {field: "nothing"}
    assert [field_error.code for field_error in field_errors(acme, spec["chain"], spec["key"])] == ["pem"]


def test_a_huge_key_is_refused_before_it_is_looked_at(acme: Actor) -> None:
    chain, _ = made.below("P-256")
    key = made.key_of("P-384").replace("\n", "\n" + "A" * 64 + "\n", 1)
    padded = key.replace("A" * 64 + "\n", ("A" * 64 + "\n") * (MAX_KEY // 64))
    assert [(field_error.pointer, field_error.code) for field_error in field_errors(acme, chain, padded)] == [
        ("/spec/key", "too_long")
    ]
