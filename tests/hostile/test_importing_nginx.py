"""Files that somebody hostile sends as an nginx.conf: no file of this machine is read, and none keeps it busy."""

from __future__ import annotations

import cProfile

import pytest

from apps.importing.apart import TooMuchWork, read_apart
from apps.importing.contract import Import
from apps.importing.formats import FORMATS
from apps.importing.masking import HIDDEN, without_secrets
from apps.importing.nginx.reading import read_nginx
from apps.importing.nginx.text import tree
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Verdict
from tests.forked_readers import forked_readers

__all__ = ["forked_readers"]


def read(text: str, files: dict[str, str] | None = None) -> Import:
    return read_nginx(text, files or {}, ImportOptions())


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../../etc/passwd", "/etc/pass*", "/proc/self/environ", "/e*/*"])
def test_a_name_in_the_file_is_never_looked_for_on_this_machine(path: str) -> None:
    found = read(f"""http {{
 include {path};
 server {{
  listen 443 ssl; ssl_certificate {path}; ssl_certificate_key {path}; ssl_client_certificate {path};
  ssl_verify_client on; error_page 500 {path}; auth_basic x; auth_basic_user_file {path};
  location / {{ proxy_pass https://10.0.0.1; proxy_ssl_verify on; proxy_ssl_trusted_certificate {path}; }}
 }} }}""")
    assert "root:" not in repr(found)
    (line,) = [each for each in found.report if each.text == f"include {path}"]
    assert line.verdict is Verdict.DIFFERENT
    given = read(f"http {{ include {path}; }}", {path.replace("*", "wd"): "root 1;"})
    assert "root 1" in repr(given.report), "else this proves nothing"


@pytest.mark.parametrize(
    "files",
    [
        {"a.conf": "include a.conf;"},
        {"a.conf": "include b.conf;", "b.conf": "include a.conf;"},
        {"a.conf": "include *.conf;", "b.conf": "include *.conf; include *.conf;"},
    ],
    ids=["itself", "each other", "all"],
)
def test_files_that_include_each_other_are_read_once_each(files: dict[str, str]) -> None:
    found = read("http { include a.conf; }", files)
    assert any("includes itself" in reason for line in found.report for reason in line.reasons)


def test_files_that_include_more_and_more_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST", 2_000)
    files = {f"{n}.conf": f"include {n + 1}.conf;\n" * 10 for n in range(12)}
    found = read("include 0.conf;", files)
    assert any("directives in all" in reason for line in found.report for reason in line.reasons)


HOSTILE = {
    "binary": "\x00\x01\x02" * 1000,
    "open": "{" * 5000,
    "closed": "}" * 5000,
    "blocks": "http { " * 3000 + "}" * 3000,
    "locations": "http { server { " + "location / { " * 400 + "}" * 402,
    "ifs": "http { server { " + "if ($a) { " * 400 + "}" * 402,
    "quote": 'http { server { location / { return 200 "' + "\\" * 10_000,
    "patterns": "http { server { location ~ (a+)+$ { } location ~ ((a+)+)+$ { } } }",
    "growing": "http { server { set $a $a$a; set $a $a$a; " + "set $a $a$a; " * 60 + "return 301 $a; } }",
    "circles": "http { map $b $a { x $b; } map $a $b { y $a; } server { return 301 $a$b; } }",
    "itself": "http { map $a $a { x $a; default $a$a; } server { if ($a) { return 301 $a; } proxy_pass http://$a; } }",
    "maps": "http { "
    + "".join(f"map $http_x{n} $v{n} {{ a $v{n + 1}; b $v{n + 1}; default 1; }}" for n in range(40))
    + "server { return 301 $v0; } }",
    "expressions": "http { server { "
    + "".join(f"location ~ ^/{n}[a-z]*x {{ return 204; }}" for n in range(800))
    + " } }",
    "servers": "http { " + "server { server_name a.example.com; return 204; }" * 1000 + "}",
    "networks": "allow 1; deny ::/0;" * 100
    + "http { server { "
    + "deny 10.0.0.1/31;" * 500
    + " proxy_pass http://a; } }",
}
# Each keeps its process busy until its ceiling, a second, as "blocks" does, which each change is asked.
BUSY = ("maps", "expressions")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=pytest.mark.exhaustive if name in BUSY else ())
        for name, text in HOSTILE.items()
    ],
)
@pytest.mark.slow(reason="one keeps a reader busy for a second")
@pytest.mark.usefixtures("forked_readers")
def test_a_hostile_file_is_read_or_refused_within_its_ceilings(text: str) -> None:
    try:
        found = read_apart(FORMATS["nginx"], text, {}, ImportOptions(), processor_s=1)
    except TooMuchWork:
        return
    assert all(line.verdict for line in found.report)


@pytest.mark.parametrize(
    "line",
    [
        'proxy_set_header Authorization "Bearer hidden-word";',
        "proxy_set_header X-Api-Key hidden-word;",
        "add_header Set-Cookie hidden-word;",
        "set $api_token hidden-word;",
        "if ($http_authorization = hidden-word) { }",
        "if ($cookie_session != hidden-word) { }",
        "fastcgi_param DB_PASSWORD hidden-word;",
        "map $http_x_api_key $client { hidden-word one; }",
        "secure_link_secret hidden-word;",
        "proxy_pass http://user:hidden-word@10.0.0.1/;",
    ],
)
def test_secrets_of_a_line_are_hidden_in_text_and_reasons(line: str) -> None:
    found = read(f"http {{ server {{ {line} location / {{ proxy_pass http://a; {line} }} }} }}")
    assert "hidden-word" in repr(found.report), "else this proves nothing"
    told = without_secrets(found)
    assert "hidden-word" not in repr((told.report, told.needs))
    assert HIDDEN in repr(told.report)


def test_secrets_of_a_condition_are_hidden_where_its_lines_name_it() -> None:
    found = read('http { server { location / { if ($http_authorization = "Bearer hidden-word") { expires 1h; } } } }')
    assert "hidden-word" in found.report[-1].section, "else this proves nothing"
    assert "hidden-word" not in repr(without_secrets(found).report)


def test_many_servers_take_no_longer_than_their_number() -> None:
    """Each pool was compared with all before it, by reading their texts."""
    few, many = (_calls(_servers(count)) for count in (25, 200))
    assert many < few * 8 * 1.5


def _servers(count: int) -> str:
    hosts = (f"server {{ server_name h{n}.example; location / {{ proxy_pass http://10.0.0.1:{n}; }} }}" for n in
             range(8000, 8000 + count))  # fmt: skip
    return f"http {{ {' '.join(hosts)} }}"


def _calls(text: str) -> int:
    """How many functions reading calls: unlike time, that is the same on every machine."""
    profile = cProfile.Profile()
    profile.runcall(read, text)
    return sum(each.callcount for each in profile.getstats())
