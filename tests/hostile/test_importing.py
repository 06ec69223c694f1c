"""Files that somebody hostile sends as a haproxy.cfg: no file of this machine is read, and none keeps it busy."""

from __future__ import annotations

import time

import pytest

from apps.importing.apart import TooMuchWork, read_apart
from apps.importing.contract import Import
from apps.importing.formats import FORMATS
from apps.importing.haproxy.reading import read_haproxy
from apps.importing.masking import HIDDEN, without_secrets
from apps.importing.options import ImportOptions
from tests.forked_readers import forked_readers

__all__ = ["forked_readers"]

DEFAULTS = "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"


def read(text: str, files: dict[str, str] | None = None) -> Import:
    return read_haproxy(DEFAULTS + text, files or {}, ImportOptions())


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../../etc/passwd", "/proc/self/environ", "file:///etc/passwd"])
def test_a_name_in_the_file_is_never_looked_for_on_this_machine(path: str) -> None:
    found = read(f"""
frontend f
 bind :80 ssl crt {path}
 acl bad src -f {path}
 http-request deny if bad
 use_backend %[req.hdr(host),map({path})]
 errorfile 503 {path}
""")
    assert "root:" not in repr(found)
    assert any(path in need for need in found.needs)


@pytest.mark.parametrize("line", ["tcp-request", "bind :443 ssl crt /", "bind :443 ssl crt ."])
def test_a_line_that_says_less_than_it_should_is_reported_and_no_error(line: str) -> None:
    found = read(f"listen t\n mode tcp\n bind :5432\n {line}\n server s 10.0.0.1:80\n")
    assert any(each.text == line and each.verdict for each in found.report)


@pytest.mark.parametrize(
    "text",
    [
        "\x00\x01\x02" * 1000,
        ".if\n" * 5000,
        ".if defined(A)\n" * 2000 + ".endif\n",
        "frontend f\n" * 3000,
        'frontend f\n acl a path "' + "\\" * 10_000,
        "frontend f\n acl a path_reg (a+)+$\n use_backend b if " + "{ path_reg ((a+)+)+$ } " * 200,
        "defaults a from a\ndefaults b from a\ndefaults a from b\n",
        "setenv A ${A}${A}\n" * 60 + "frontend ${A}\n",
    ],
    ids=["binary", "ifs", "nested", "frontends", "quote", "patterns", "circles", "growing"],
)
@pytest.mark.usefixtures("forked_readers")
def test_a_hostile_file_is_read_or_refused_within_its_ceilings(text: str) -> None:
    try:
        found = read_apart(FORMATS["haproxy"], DEFAULTS + text, {}, ImportOptions(), processor_s=5)
    except TooMuchWork:
        return
    assert all(line.verdict for line in found.report)


@pytest.mark.slow(reason="a reader works on it")
@pytest.mark.usefixtures("forked_readers")
def test_secrets_are_looked_for_in_hostile_lines_within_the_ceilings_of_the_reader() -> None:
    text = DEFAULTS + "frontend f\n" + (" " + "token" * 3200 + "\n") * 20 + " " + "x(token" * 2200 + "\n"
    text += " http-request set-header X-Api-Key hidden-word\n"
    before = time.process_time()
    found = read_apart(FORMATS["haproxy"], text, {}, ImportOptions(), processor_s=5)
    assert time.process_time() - before < 1, "the process that asks does none of this work"
    assert "hidden-word" not in repr(found.report)
    assert HIDDEN in repr(found.report)


@pytest.mark.slow(reason="a reader works on it")
@pytest.mark.usefixtures("forked_readers")
@pytest.mark.parametrize(("repeated", "is_much"), [(20, False), (400, True)])
def test_a_few_lines_do_not_become_a_report_that_fills_the_memory_of_who_asks(repeated: int, is_much: bool) -> None:
    doubled = "".join(f' setenv A{n + 1} "${{A{n}}}${{A{n}}}"\n' for n in range(6))
    lists = "".join(f' acl a{n} src -f "/{n}$A6"\n use_backend b if a{n}\n' for n in range(repeated))
    text = f"global\n setenv A0 {'x' * 2000}\n{doubled}{DEFAULTS}frontend f\n bind :80\n{lists}"
    if not is_much:
        assert read_apart(FORMATS["haproxy"], text, {}, ImportOptions()).report
        return
    with pytest.raises(TooMuchWork):
        read_apart(FORMATS["haproxy"], text, {}, ImportOptions())


@pytest.mark.slow(reason="the reader is left to work for a second")
def test_a_reader_is_ended_when_its_second_is_over_and_not_before() -> None:
    # Many more than the fastest machine reads in that time.
    hosts = "".join(f" acl h{n} hdr(host) h{n}.example\n use_backend b if h{n}\n" for n in range(60_000))
    text = f"{DEFAULTS}frontend f\n bind :80\n{hosts}backend b\n server s 10.0.0.1:80\n"
    with pytest.raises(TooMuchWork):
        read_apart(FORMATS["haproxy"], text, {}, ImportOptions(), processor_s=1)
    assert read_apart(FORMATS["haproxy"], DEFAULTS, {}, ImportOptions(), processor_s=1).report


@pytest.mark.parametrize(
    "line",
    [
        "user a insecure-password hidden-word",
        "user a password hidden-word",
        "stats auth admin:hidden-word",
        "setenv PLAIN hidden-word",
        'http-request set-header Authorization "Bearer hidden-word"',
        "http-request set-header X-Api-Key hidden-word",
        "acl known req.hdr(X-Auth-Token) -m str hidden-word",
        "http-check send hdr Authorization hidden-word",
        r"reqadd Authorization:\ Basic\ hidden-word",
        r"option httpchk GET / HTTP/1.1\r\nAuthorization:\ Basic\ hidden-word",
        "server a http://user:hidden-word@10.0.0.1:80",
        'http-request set-var(txn.ok) var(txn.x),hmac(sha256,"hidden-word")',
        "-----BEGIN PRIVATE KEY----- hidden-word",
    ],
)
def test_secrets_of_a_line_are_hidden_in_text_and_reasons(line: str) -> None:
    found = read(f"userlist u\n {line}\nbackend b\n {line}\n")
    assert "hidden-word" in repr(found.report), "else this proves nothing"
    told = without_secrets(found)
    assert "hidden-word" not in repr(told)
    assert HIDDEN in repr(told.report)


def test_what_is_no_secret_stays_in_the_report() -> None:
    for line in ("option httpchk GET /password-reset", "acl a hdr(host) token.example", "bind :443 ssl crt a.pem"):
        assert without_secrets(read(f"listen l\n {line}\n")).report[-1].text == line
