"""`manage.py compile`: what the nodes of a fleet would run, for people, without their secrets."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Server
from apps.fleet.models import Fleet

pytestmark = pytest.mark.django_db
FLEET = "us-central1"


def said(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("compile", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_prints_the_file_that_a_push_would_bring(tutorial_env: Actor) -> None:
    bundle = compile_snapshot(snapshot_of(Fleet.objects.get(name=FLEET))).output
    assert said(FLEET, "--show") == (bundle.files["haproxy.cfg"].decode(), "")
    listed, _ = said(FLEET)
    assert bundle.digest in listed
    assert all(path in listed for path in bundle.files)


def test_it_names_what_was_left_out(tutorial_env: Actor) -> None:
    Server.objects.filter(name="us-vm-1").update(address="169.254.169.254")
    assert "left out: " in said(FLEET)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "There is no fleet nowhere; the fleets are"),
        ((FLEET, "--show", "maps/none.map"), "The bundle has no file"),
        ((FLEET, "--show", "secrets/overflow.map"), "Only nodes may read"),
        ((FLEET, "--show", "certs/cert-1.pem"), "Only nodes may read"),
    ],
)
def test_what_it_cannot_show_is_said(tutorial_env: Actor, words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        said(*words)
