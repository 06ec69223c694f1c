"""`manage.py import`: the report first, then one change; again without a difference, and with what a change of the file
changes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.actors import Actor
from apps.compiler.compile import compile_snapshot
from apps.definitions.freezing.snapshot import snapshot_of
from apps.definitions.models import Pool, Route
from apps.fleet.models import Fleet

pytestmark = pytest.mark.django_db
FLEET = "us-central1"
FILE = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend moved-in
    bind :8181
    http-response set-header X-Frame-Options DENY
    use_backend moved-api if { path_beg /api }
    default_backend moved-web
backend moved-api
    server a 10.50.0.1:8080 check
backend moved-web
    server w 10.50.0.2:8080 check
"""


def said(path: Path, *words: str) -> str:
    out = io.StringIO()
    call_command("import", str(path), "--fleet", FLEET, *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "haproxy.cfg"
    path.write_text(FILE)
    return path


def test_nothing_is_stored_before_it_is_asked_for(tutorial_env: Actor, old: Path) -> None:
    told = said(old)
    assert "Would do: " in told
    assert "create  LoadBalancer operator/moved-in" in told
    assert not Pool.objects.filter(name="moved-api").exists()


def test_it_is_applied_as_one_change_and_nothing_is_left_to_do(tutorial_env: Actor, old: Path) -> None:
    assert "Applied: " in said(old, "--apply")
    assert Route.objects.filter(load_balancer__name="moved-in").count() >= 2
    compilation = compile_snapshot(snapshot_of(Fleet.objects.get(name=FLEET)))
    assert not [each.message for each in compilation.left_out if "moved" in each.label]
    assert "0 create, 0 update, 0 delete" in said(old)


def test_a_changed_file_shows_what_changed(tutorial_env: Actor, old: Path) -> None:
    said(old, "--apply")
    old.write_text(FILE.replace("10.50.0.2", "10.50.0.3"))
    told = said(old)
    assert "update  Pool operator/moved-web" in told
    assert "0 create, 1 update, 0 delete" in told


def test_open_questions_are_answered_before_anything_is_stored(tutorial_env: Actor, old: Path) -> None:
    old.write_text(FILE.replace("10.50.0.1:8080", "127.0.0.1:8080"))
    Fleet.objects.filter(name=FLEET).update(local_development=False)
    with pytest.raises(CommandError, match="answer the questions above"):
        said(old, "--apply")
    assert not Pool.objects.filter(name="moved-api").exists()
    assert "Applied: " in said(old, "--apply", "--map-servers", "127.0.0.1:8080=10.50.0.9:8080")
    assert Pool.objects.filter(name="moved-api").exists()


def test_programs_get_the_whole_of_it(tutorial_env: Actor, old: Path) -> None:
    found = json.loads(said(old, "--json"))
    assert {each["kind"] for each in found["objects"]} == {"Pool", "Policy", "LoadBalancer", "Route"}
    assert all(each["verdict"] for each in found["report"])


def test_the_format_is_recognised_or_said(tutorial_env: Actor, tmp_path: Path) -> None:
    path = tmp_path / "moved.txt"
    path.write_text("http { server { listen 8189; return 204; } }")
    for words in ((), ("--format", "nginx")):
        assert "create  LoadBalancer operator/nginx-8189" in said(path, *words)
    path.write_text("once upon a time")
    with pytest.raises(CommandError, match=r"Say which it is: .*nginx \(nginx.conf\).* Use --format."):
        said(path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--fleet", "nowhere"), "Name the fleet"),
        (("--map-servers", "nothing"), "Write OLD=NEW"),
        (("--account", "nobody"), "Nothing was stored"),
    ],
)
def test_what_cannot_be_done_is_said(tutorial_env: Actor, old: Path, words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        said(old, *words)


def test_what_came_in_can_leave_as_a_plain_file(tutorial_env: Actor, old: Path, tmp_path: Path) -> None:
    said(old, "--apply")
    to, out = tmp_path / "out", io.StringIO()
    call_command("export", "moved-in", "--to", str(to), stdout=out)
    text = (to / "haproxy.cfg").read_text()
    assert "SPILLWAY" not in text
    assert "bind *:8181" in text
    assert "10.50.0.1:8080" in text
    assert f"Check them in {to}" in out.getvalue()
    with pytest.raises(CommandError, match="Name a new folder"):
        call_command("export", "moved-in", "--to", str(to), stdout=out)
    with pytest.raises(CommandError, match="Name the fleet of nothing"):
        call_command("export", "nothing", "--to", str(tmp_path / "none"), stdout=out)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--access-log", "empty.log"), "belongs to --replay"),
        (("--replay", "--access-log", "empty.log"), "no request that is understood"),
        (("--replay", "--access-log", "nowhere.log"), "No such file"),
    ],
)
def test_an_access_log_without_requests_is_said(
    tutorial_env: Actor, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    (tmp_path / "haproxy.cfg").write_text("frontend fe\n bind :80\n")
    (tmp_path / "empty.log").write_text("nothing\n")
    with pytest.raises(CommandError, match=why):
        call_command("import", str(tmp_path / "haproxy.cfg"), *words[:-1], str(tmp_path / words[-1]))
