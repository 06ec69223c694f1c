"""Old configurations and what became of them, side by side on real HAProxy: every request is answered equally."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.services import apply_document
from apps.fleet.models import Fleet
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import NotReplayable, Replay
from apps.importing.replay.running import replay
from tests.pure.compiler_fixtures import certificate_pem

pytestmark = [pytest.mark.django_db, pytest.mark.processes]
CORPUS = Path(__file__).resolve().parents[1] / "import" / "corpus"
FILES = sorted(CORPUS.glob("*.cfg"))
BESIDE = {str(path): path.read_text() for path in (CORPUS / "files").iterdir()}
CERTIFICATE = "stand-in"
TOPOLOGY = [
    {"kind": "Region", "name": "edge", "spec": {"title": "Edge"}},
    {"kind": "Fleet", "name": "edge", "spec": {"region": "edge", "local_development": True}},
]
FAST = """
defaults
    mode http
    timeout connect 5s
    timeout client 9s
    timeout server 9s
frontend fe
    bind :80
    http-request redirect prefix https://www.example.com code 301 if { hdr(host) -i example.com }
    http-request deny if { path /secret }
    http-response set-header X-Frame-Options DENY
    use_backend api if { path_beg /api/ }
    default_backend web
backend api
    http-request replace-path /api/(.*) /\\1
    server s 10.0.0.1:80
backend web
    server s 10.0.0.2:80
"""


def replayed(operator: Actor, text: str, folder: Path) -> Replay:
    options = ImportOptions(
        fleets=("edge",), region="edge", local_development=True,
        passwords={"alice": "a long password", "bob": "not-so-secret", "deploy": "tools-secret-1"},
    )  # fmt: skip
    found = read_haproxy(text, BESIDE, options)
    pem = certificate_pem("stand-in.example.com")
    file = folder / "stand-in.pem"
    file.write_text(pem)
    begin = pem.index("-----BEGIN PRIVATE KEY-----")
    parts = [part + "\n" for part in (pem[:begin].strip(), pem[begin:].strip())]
    stand_in = {"kind": "Certificate", "name": CERTIFICATE, "spec": {"chain": parts[0], "key": parts[1]}}

    def compiled(documents: list[dict[str, Any]]) -> tuple[Bundle, Mapping[str, str]]:
        apply_document(actor=operator, objects=[*TOPOLOGY, stand_in, *documents])
        snapshot = snapshot_of(Fleet.objects.get(name="edge"))
        compilation = compile_snapshot(snapshot)
        assert [each.message for each in compilation.left_out] == []
        return compilation.output, {pool.id: pool.label.rpartition("/")[2] for pool in snapshot.pools}

    return replay(text, BESIDE, options, found, compiled, folder, (CERTIFICATE, file))


# What the report says of these files, as it is seen in requests: a word of each difference.
SAID = {
    "12-rewrites": ("/oldzz", "/app1zz"),
    "13-cors-and-headers": ("x-ssl", "x-request-start"),
    "36-old-urls": ("/germanzz", "/apizz", "location: 'http://www.example.com/"),
    "28-docker-names": ("x-forwarded-prefix",),
}


def is_said(stem: str, request: object, said: tuple[str, ...]) -> bool:
    """Whether the report says all of it at a line."""
    words = SAID.get(stem, ())
    return all(any(word in f"{request} {each}" for word in words) for each in said)


def told(result: Replay) -> str:
    shown = [f"{request}: {'; '.join(said)}" for request, said in result.different[:12]]
    return "\n".join([f"{result.equal} of {result.asked} equal", *shown])


@pytest.mark.slow(reason="two HAProxy answer 150 requests")
def test_a_small_file_is_answered_equally(operator: Actor, tmp_path: Path) -> None:
    result = replayed(operator, FAST, tmp_path)
    assert result.asked > 50
    assert result.equal == result.asked, told(result)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_of_the_corpus_is_answered_equally(operator: Actor, tmp_path: Path, path: Path) -> None:
    try:
        result = replayed(operator, path.read_text(), tmp_path)
    except NotReplayable as reason:
        pytest.skip(str(reason))
    print(path.stem, told(result))
    left = [(request, said) for request, said in result.different if not is_said(path.stem, request, said)]
    assert left == [], told(result)
