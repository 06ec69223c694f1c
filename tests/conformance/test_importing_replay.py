"""Old configurations and what became of them, side by side on real HAProxy: every request is answered equally."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.actors import Actor
from apps.cli.replaying import SIDES, replayed, told
from apps.fleet.models import Fleet
from apps.importing.contract import Import
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import NotReplayable, Replay
from apps.importing.replay.old_haproxy import OldHaproxy

pytestmark = [pytest.mark.long, pytest.mark.django_db, pytest.mark.processes]
CORPUS = Path(__file__).resolve().parents[1] / "import" / "corpus"
FILES = sorted(CORPUS.glob("*.cfg"))
BESIDE = {str(path): path.read_text() for path in (CORPUS / "files").iterdir()}
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
REPORTED = """
defaults
    mode http
    timeout connect 5s
    timeout client 9s
    timeout server 9s
frontend fe
    bind :80
    http-request set-header X-Began %Ts
    use_backend api if { path_beg /api/ }
    default_backend web
backend api
    server s 10.0.0.1:80
backend web
    server s 10.0.0.2:80
"""


SHARED = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 9s
    timeout server 9s
frontend fe
    bind :443
    tcp-request inspect-delay 2s
    tcp-request content accept if { req.ssl_hello_type 1 } or HTTP
    use_backend named if { req.ssl_sni -i a.example.com }
    use_backend acme if { req.ssl_alpn acme-tls/1 }
    use_backend web if { req.ssl_hello_type 1 } or HTTP
    use_backend ssh if { payload(0,4) -m bin 5353482d }
    default_backend rest
frontend ended
    bind :8883 ssl crt /etc/x.pem alpn mqtt
    use_backend named if { ssl_fc_alpn mqtt }
    default_backend rest
backend named
    server s 10.0.0.1:443
backend acme
    server s 10.0.0.2:443
backend web
    server s 10.0.0.3:443
backend ssh
    server s 10.0.0.4:22
backend rest
    server s 10.0.0.5:25
"""


def replayed_here(operator: Actor, text: str) -> Replay:
    passwords = {"alice": "a long password", "bob": "not-so-secret", "deploy": "tools-secret-1"}
    return replayed(operator, text, BESIDE, ImportOptions(passwords=passwords))


def said(path: Path, *words: str) -> str:
    out = io.StringIO()
    call_command("import", str(path), "--fleet", "us-central1", "--replay", *words, stdout=out)
    return out.getvalue()


def asked(text: str) -> int:
    """How many were asked, all of which were answered equally."""
    found = re.search(r"Replay: (\d+) of (\d+) requests and connections are answered equally", text)
    assert found
    assert found[1] == found[2]
    return int(found[1])


@pytest.mark.slow(reason="two HAProxy answer 150 requests")
def test_a_small_file_is_answered_equally(tutorial_env: Actor, tmp_path: Path) -> None:
    path = tmp_path / "haproxy.cfg"
    path.write_text(FAST)
    log = tmp_path / "access.log"
    log.write_text(
        '192.0.2.7 - - [1] "GET /of/the?log HTTP/1.1" 200 5\nwww.example.com "PUT /of/the/log HTTP/1.1" 204 0\n'
    )
    without, more = asked(said(path)), asked(said(path, "--access-log", str(log)))
    assert 50 < without < more
    assert not Fleet.objects.filter(name__startswith="replay-").exists()


@pytest.mark.slow(reason="each side waits for two seconds, and for five, for a client that sends nothing")
def test_connections_to_a_port_that_protocols_share_reach_the_same_servers(operator: Actor) -> None:
    result = replayed_here(operator, SHARED)
    assert result.asked > 20
    assert result.unexplained == (), list(told(result))
    by_name = {str(each.request) for each in result.different}
    assert by_name == {":443 TLS for a.example.com with acme-tls/1"}, "ALPN is looked at before names, as reported"


@pytest.mark.exhaustive
def test_a_port_that_tells_protocols_apart_no_longer_is_a_failure(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a reader that loses a way of connections silently is found out."""
    lost = "    use_backend ssh if { payload(0,4) -m bin 5353482d }\n"
    assert lost in SHARED

    def losing(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
        return read_haproxy(text.replace(lost, "\n"), files, options)

    monkeypatch.setitem(SIDES, "haproxy", (losing, OldHaproxy))
    (difference,) = replayed_here(operator, SHARED).unexplained
    assert str(difference.request) == ":443 begins b'SSH-2.0-replay'"
    assert difference.said[0].endswith("now 'rest'")


@pytest.mark.exhaustive
def test_a_difference_is_explained_by_the_line_that_reports_it(operator: Actor) -> None:
    result = replayed_here(operator, REPORTED)
    (number,) = {line for each in result.different for line in each.lines}
    assert REPORTED.splitlines()[number - 1].split()[2] == "X-Began"
    assert not result.unexplained, list(told(result))


@pytest.mark.slow(reason="two HAProxy answer 150 requests")
def test_a_difference_that_no_line_reports_is_a_failure(
    tutorial_env: Actor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The control: a reader that loses a rule silently is found out."""
    path, lost = tmp_path / "haproxy.cfg", "    http-request deny if { path /secret }\n"
    assert lost in FAST
    path.write_text(FAST)

    def losing(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
        return read_haproxy(text.replace(lost, "\n"), files, options)

    monkeypatch.setitem(SIDES, "haproxy", (losing, OldHaproxy))
    with pytest.raises(CommandError, match="answered otherwise than the report says"):
        said(path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_of_the_corpus_is_answered_equally(operator: Actor, path: Path) -> None:
    try:
        result = replayed_here(operator, path.read_text())
    except NotReplayable as reason:
        pytest.skip(str(reason))
    assert result.unexplained == (), list(told(result))
