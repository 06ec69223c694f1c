"""Each nginx.conf of ours and what became of it, side by side on real nginx and HAProxy: answered equally."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from apps.accounts.actors import Actor
from apps.cli.replaying import SIDES, replayed, told
from apps.importing.contract import Import
from apps.importing.nginx.reading import read_nginx
from apps.importing.options import ImportOptions
from apps.importing.replay.contract import Opening, Replay
from apps.importing.replay.old_nginx import OldNginx

pytestmark = [pytest.mark.long, pytest.mark.django_db, pytest.mark.processes]
CORPUS = Path(__file__).resolve().parents[1] / "import" / "nginx"
BESIDE = {str(path): path.read_text() for path in (CORPUS / "files").iterdir()}
FILES = sorted(CORPUS.glob("*.conf"))
# Of these the report says what differs; all others are answered equally to the last header.
SOME_DIFFER = {"04-inheritance", "05-redirects", "08-access", "11-behind-a-balancer", "12-streams"}


def replayed_here(operator: Actor, text: str) -> Replay:
    options = ImportOptions(passwords={"alice": "a long password"})
    return replayed(operator, text, BESIDE, options, "nginx")


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_of_the_corpus_is_answered_equally(operator: Actor, path: Path) -> None:
    result = replayed_here(operator, path.read_text())
    print("\n".join(told(result)))
    assert not result.unexplained, list(told(result))
    assert result.asked > 10
    assert path.stem in SOME_DIFFER or not result.different, list(told(result))


@pytest.mark.slow(reason="nginx and HAProxy answer 100 requests")
def test_servers_are_sent_the_name_that_proxy_pass_has(operator: Actor) -> None:
    text = """
    server { listen 80; server_name a.example;
        proxy_set_header X-Env prod;
        location / { proxy_pass http://shop.internal; }
        location /api/ { proxy_pass http://api.internal/; proxy_set_header X-Api 1; }
        location ~ ^/(?<size>[a-z]+)/x { proxy_pass http://pictures.internal; }
    }
    """
    result = replayed_here(operator, text)
    assert result.asked > 10
    assert not result.different, list(told(result))


STREAMS = """
stream {
    map $ssl_preread_server_name $name { hostnames; a.example a; *.b.example b; default rest; }
    map $ssl_preread_protocol $all { "" ssh; default $name; }
    map $ssl_preread_alpn_protocols $alpn { ~\\bacme-tls/1\\b a; default rest; }
    upstream a { server 10.0.0.1:443; }
    upstream b { server 10.0.0.2:443; }
    upstream rest { server 10.0.0.3:443; }
    upstream ssh { server 10.0.0.4:22; }
    ssl_preread on;
    preread_timeout 1s;
    server { listen 443; proxy_pass $all; }
    server { listen 444; proxy_pass $alpn; }
    server { listen 445 ssl; ssl_certificate /x.pem; ssl_certificate_key /x.key; proxy_pass $name; }
    server { listen 446-447; ssl_preread off; proxy_pass ssh; }
}
"""


@pytest.mark.slow(reason="clients that say nothing are waited for on both sides")
def test_connections_of_tcp_reach_the_servers_that_they_reached(operator: Actor) -> None:
    result = replayed_here(operator, STREAMS)
    assert result.asked > 40
    assert not result.unexplained, list(told(result))
    opened = [each.request for each in result.different if isinstance(each.request, Opening)]
    assert {each.name for each in opened if len(each.sent) >= 5 or (each.port == 443 and each.is_tls)} == {
        "zz.any.b.example"
    }


@pytest.mark.slow(reason="nginx and HAProxy are asked 20 times")
def test_a_way_of_connections_that_is_lost_is_a_failure(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a reader that loses a name silently is found out."""
    text = STREAMS.replace("proxy_pass $all", "proxy_pass $name").replace(
        "server { listen 444; proxy_pass $alpn; }", ""
    )

    def losing(text: str, files: Mapping[str, str], options: ImportOptions) -> Import:
        return read_nginx(text.replace("a.example a; ", ""), files, options)

    monkeypatch.setitem(SIDES, "nginx", (losing, OldNginx))
    found = {str(each.request) for each in replayed_here(operator, text).unexplained}
    assert ":443 TLS for a.example" in found


def random_file(seed: int) -> str:
    """Locations of every kind, nested and beside each other, as nobody would write them."""
    dice = random.Random(seed)
    paths = ["/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/c/", "/c/d.png", "/a/b/c/"]
    expressions = [r"\.png$", "^/a/", "^/c/[a-z]+$", "b/", "^/(a|c)/d", r"^/ab?/x"]

    def answer(sign: str) -> str:
        pool = dice.choice("pqrs")
        plain = f"proxy_pass http://{pool};"
        beside = [plain] * 3 + ["return 204;", "return 302 https://$host/z$request_uri;", "deny all; " + plain]
        beside += [f"add_header X-A {pool} always; proxy_set_header Host $host; proxy_set_header X-B {pool}; {plain}"]
        return dice.choice(
            beside + ([f"proxy_pass http://{pool}/n/;", f"proxy_pass http://{pool}/m;"] if not sign else [])
        )

    def location(around: str, depth: int) -> str:
        if dice.random() < 0.3:
            return f"location {dice.choice(('~', '~*'))} {dice.choice(expressions)} {{ {answer('~')} }}"
        sign = dice.choice(("", "", "", "=", "^~"))
        path = dice.choice([each for each in paths if each.startswith(around)] or [around])
        inner = location(path, depth + 1) if depth < 2 and sign != "=" and dice.random() < 0.25 else ""
        return f"location {sign} {path} {{ {inner} {answer('~' if sign == '=' else '')} }}"

    def once(texts: list[str]) -> list[str]:
        """Without two of one path, which nginx does not take."""
        heads = (text.partition("{")[0].replace("^~", "").replace("~*", "~") for text in texts)
        return list({" ".join(head.split()): text for head, text in zip(heads, texts, strict=True)}.values())

    servers = ""
    for host in ("one.example.com", "*.example.com"):
        own = "\n".join(once([location("/", 1) for _ in range(7)]))
        servers += f"server {{ listen 80; server_name {host}; proxy_set_header Host $host;\n{own}\n}}\n"
    upstreams = "".join(f"upstream {name} {{ server 10.0.0.{at}:80; }}\n" for at, name in enumerate("pqrs", 1))
    return f"http {{\n{upstreams}{servers}}}\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(12))
def test_locations_that_nobody_would_write_are_answered_equally_or_reported(operator: Actor, seed: int) -> None:
    result = replayed_here(operator, random_file(seed))
    print(list(told(result))[-1])
    assert not result.unexplained, random_file(seed) + "\n".join(told(result))
