"""The values: what real products fell to, by class. No value stands in two classes.

Whether a value is hostile depends on the field that it is put into: `fields.py` says what each field may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

BREAKS = (
    *("\n", "\r", "\r\n", "\x00", "\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x1c", "\x1d", "\x1e", "\x7f"),
    *("\x80", "\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\ufeff"),
)
BLANKS = (" ", "\t", "\u00a0", "\u1680", "\u2003", "\u200b", "\u200d", "\u2060", "\u3000")
SIGNS = ('"', "'", "\\", "#", ";", ",", "|", "{", "}", "(", ")", "`", "<", ">", "[", "]", "!", "&", "^", "~")
WORDS = ("shop", "a.example")


def _placed(signs: Iterable[str], words: Iterable[str]) -> Iterator[str]:
    """Each sign before, in and after each word."""
    for sign, word in product(signs, words):
        yield from (f"{sign}{word}", f"{word[:2]}{sign}{word[2:]}", f"{word}{sign}")


def _keywords() -> Iterator[str]:
    yield from (
        "if",
        "unless",
        "TRUE",
        "FALSE",
        "or",
        "||",
        "-m",
        "-f",
        "-i",
        "-n",
        "--",
        "-",
        "on",
        "off",
        "no",
        "yes",
    )
    yield from ("-m reg .*", "-m reg", "-f /etc/passwd", "-i a.example", "-- a.example", "a.example -m beg a")
    yield from (
        "global",
        "defaults",
        "frontend",
        "backend",
        "listen",
        "peers",
        "resolvers",
        "userlist",
        "cache",
        "ring",
    )
    yield from ("frontend x", "backend x\n  server a 10.0.0.1:80", "server evil 10.6.6.6:80", "use_backend x if TRUE")
    yield from (
        "http-request deny",
        "lua-load /x",
        "stats socket /x",
        "a.example victim.example",
        "pool-17",
        "queue-17",
    )
    yield from ("route-7", "lb-1", "st_limits", "together", "overflow-tcp", "to-rgn-2", "spillway", "nul", "con", "..")


def _templates() -> Iterator[str]:
    inside = ("env(HOME)", "src", "req.hdr(host)", "var(txn.x)", "str(a)")
    yield from (f"%[{text}]" for text in inside)
    yield from (f"a%[{text}]b.example" for text in inside)
    yield from ("%%", "%ci", "%{+Q}o", "%1$s", "%n%n", "%s%s", "${HOME}", "$HOME", "a${IFS}b", "$(id)", "`id`", "$$")
    yield from ("{{7*7}}", "{% include 'x' %}", "{{config}}", "#{7*7}", "<%= 7*7 %>", "${7*7}", "@{x}", "*{x}")
    yield from ('${file("/etc/passwd")}', "%{ for x in y }", "${path.module}", "%{ if true }", "$${x}", "%%{x}")
    yield from ("{0.__class__}", "{settings.SECRET_KEY}", "__import__('os')", "!!python/object:os.system", "&a *a")


def _hosts() -> Iterator[str]:
    yield from (
        "*",
        "*.",
        "*.com",
        "**.a.example",
        "*a.example",
        "a*.example",
        "a.*.example",
        "*.*.example",
        "?.example",
    )
    yield from ("a.example.", ".a.example", "a..example", "A.example", "a.EXAMPLE", "a_b.example", "-a.example")
    yield from ("a-.example", f"{'a' * 64}.example", f"{'a.' * 127}example", "com", "localhost", "a.example:80")
    yield from ("user@a.example", "user:x@a.example", "a.example/", "a.example?x", "http://a.example", "//a.example")
    yield from ("аcme.example", "ａ.example", "a．example", "a。example", "bücher.example", "ß.example", "ⅷ.example")
    yield from ("xn--.example", "a.example%00.b.example", "a%2eexample", "[::1]", "[a.example]", "a.example#b", "0")
    yield from (
        "1.2.3.4.5",
        "a.1",
        "0x7f.1",
        "a.example victim",
        "a.example\u3002b",
        "İ.example",
        "ſhop.example",
        "K.example",
    )


def _paths() -> Iterator[str]:
    yield from (
        "//",
        "/a//b",
        "//a.example/x",
        "/..",
        "/a/..",
        "/a/../b",
        "/./a",
        "/a/.",
        "/%2e%2e/",
        "/%2E%2e",
        "/.%2e",
    )
    yield from (
        "/%2f",
        "/a%2Fb",
        "/%5c",
        "/a\\b",
        "\\a",
        "/a;x",
        "/a;v=1/b",
        "/a?b",
        "/?",
        "/a#b",
        "/#",
        "/%00",
        "/%0a",
    )
    yield from (
        "/%",
        "/%g0",
        "/%2",
        "/a b",
        "/a\tb",
        "/é",
        "/\u2215",
        "/*",
        "/a*",
        "/{x}",
        "/a|b",
        "/^a$",
        "/<x>",
        '/"',
    )
    yield from ("/ } || { always_true", "/a } or { path /", "/a -m reg .*", "/a # x", "/$(id)", "/%[src]", "/${X}")
    yield from ("/" + "a" * 8193, "/" + "a/" * 4000, "/a" * 1025, "/~root", "/a/b/../../c", "/..;/x", "/%252e%252e/x")
    yield from ("a/b", "./a", "?a", "file:///etc/passwd", "/a\x00b", "/^/(?:(a+)+x|a+!)$", "/\u202e", "/a:b@c")


def _headers() -> Iterator[str]:
    yield from ("Host", "host", "Content-Length", "content-length", "Connection", "Transfer-Encoding", "TE", "Trailer")
    yield from (
        "Upgrade",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "X-Forwarded-For",
        "x-forwarded-for",
    )
    yield from (
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "X-Forwarded-Port",
        "Forwarded",
        "X-Real-IP",
        "X_Forwarded_For",
    )
    yield from (
        "X.Forwarded.For",
        "X-Spillway-Key",
        "x-spillway-from",
        ":authority",
        ":path",
        "X-A:",
        "X A",
        "X-A\r\nX-B",
    )
    yield from ("é", "X-é", "X-A: b", "(X)", "X/A", "X@A", "X=A", "X?A", "X{A}", "X" * 300, "v" * 65_537, "a\r\nb: c")


def _addresses() -> Iterator[str]:
    yield from ("unix@/var/run/docker.sock", "/var/run/docker.sock", "abns@x", "fd@3", "sockpair@3", "ipv4@10.0.0.1")
    yield from ("ipv6@::1", "udp@10.0.0.1", "quic4@10.0.0.1", "2130706433", "017700000001", "0x7f000001", "0x7f.0.0.1")
    yield from (
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "010.0.0.1",
        "10.0.0.01",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.1.",
        "10.0.0.1:80",
    )
    yield from (
        "10.0.0.1/8",
        "10.0.0.1%eth0",
        "fe80::1%eth0",
        "0.0.0.0",
        "::",
        "255.255.255.255",
        "224.0.0.1",
        "239.1.1.1",
    )
    yield from ("ff02::1", "169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe")
    yield from ("64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::", "::ffff:127.0.0.1", "::ffff:7f00:1")
    yield from (
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "2001:0:1::1",
        "0:0:0:0:0:0:0:1",
        "[10.0.0.1]",
        "::1 ",
        "1::2::3",
    )
    yield from (
        "metadata.google.internal",
        "metadata",
        "instance-data",
        "10.0.0.1 check",
        "10.0.0.1,10.0.0.2",
        "300.1.1.1",
    )
    yield from (
        "http://10.0.0.1",
        "10.0.0.1#x",
        "１０.0.0.1",
        "10。0。0。1",
        "192.168.0.1\\@evil",
        "::ffff:0:127.0.0.1",
    )


def _numbers() -> Iterator[Any]:
    yield from (
        -1,
        -0.5,
        2**31,
        2**32,
        2**53 + 1,
        2**63,
        2**64,
        10**30,
        65_536,
        1_000_001,
        1e9,
        1e308,
        -(2**31),
        99_999_999,
    )
    yield from (
        "1e3",
        "0x50",
        "0o17",
        "0b1",
        "080",
        "+80",
        "-80",
        "80.0",
        "8 0",
        "1_000",
        "1,000",
        "٨٠",
        "８０",
        "Ⅷ",
        "½",
    )
    yield from (
        "80",
        "0",
        "",
        "NaN",
        "Infinity",
        "-Infinity",
        "nan",
        "inf",
        "null",
        "None",
        "true",
        "false",
        "undefined",
    )
    yield from (80.5, 1.0000001, 1e-9, 0.1 + 0.2, float("nan"), float("inf"), float("-inf"))


def _shapes() -> Iterator[Any]:
    yield from (True, False, [], {}, [[]], [{}], {"": ""}, {"a": 1}, ["a"], ["a", "a"], [None], [1, 2], [[[[[[]]]]]])
    yield from (
        {"$gt": ""},
        {"__class__": "x"},
        {"constructor": {"prototype": 1}},
        {"spec": {}},
        {"name": "x", "is_staff": True},
    )
    yield from (
        "x" * 9000,
        "x" * 100_000,
        "\ud800",
        "a\udfff",
        "é" * 300,
        "[]",
        "{}",
        "[object Object]",
        "\ufffe",
        "\uffff",
    )


def _web() -> Iterator[str]:
    yield from (
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</title><script>",
        "<svg/onload=alert(1)>",
    )
    yield from (
        '"><b hx-get="/x">',
        "' hx-on:click='x'",
        '" onmouseover="x',
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
    )
    yield from (
        "data:text/html,<script>",
        "vbscript:x",
        "<!--",
        "-->",
        "]]>",
        "<![CDATA[",
        "&lt;script&gt;",
        "&#60;script&#62;",
    )
    yield from (
        "<hx-partial>",
        '<a href="//evil.example">',
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "<iframe>",
    )


def _exports() -> Iterator[str]:
    yield from ("=cmd|' /C calc'!A0", "=1+1", "+1+1", "-1+1", "@SUM(A1)", '=HYPERLINK("//evil")', "\t=1", "\r=1", ";=1")
    yield from (
        "\x1b[31mred",
        "\x1b]0;title\x07",
        "\x1b[2J",
        "\x9b31m",
        "a\r\n2026-01-01 INFO fake",
        "a\nb,c\n",
        "%0d%0aSet-Cookie:x",
    )


def _times() -> Iterator[str]:
    yield from (
        "2026-02-30",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "9999-12-31T23:59:60Z",
    )
    yield from (
        "0000-00-00",
        "10000-01-01T00:00:00Z",
        "2026-01-01",
        "01/02/2026",
        "tomorrow",
        "now",
        "1768000000",
        "-1",
        "P1D",
    )
    yield from (
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00+99:99",
        "2026-01-01T00:00:00 Mars/Olympus",
        "* * * * * *",
        "@reboot",
    )


def _certificates() -> Iterator[str]:
    yield from ("-----BEGIN CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    yield from (
        "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n",
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIB",
    )
    yield from ("../../etc/ssl/key.pem", "/etc/ssl/private/key.pem", "key.pem\x00.crt", "-----END CERTIFICATE-----")
    yield from (
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" * 3,
        "-----BEGIN OPENSSH PRIVATE KEY-----\n",
    )


def _collected() -> dict[str, tuple[Any, ...]]:
    made: dict[str, Iterable[Any]] = {
        "line breaks": _placed(BREAKS, WORDS),
        "blanks": [*_placed(BLANKS, WORDS), "", " ", "\t", "\n"],
        "separators and quotes": _placed(SIGNS, WORDS),
        "keywords and flags": _keywords(),
        "formats and templates": _templates(),
        "hosts": _hosts(),
        "paths": _paths(),
        "headers": _headers(),
        "addresses": _addresses(),
        "numbers": _numbers(),
        "shapes": _shapes(),
        "web": _web(),
        "logs and exports": _exports(),
        "times": _times(),
        "certificates": _certificates(),
    }
    seen: set[str] = set()
    found: dict[str, tuple[Any, ...]] = {}
    for name, values in made.items():
        fresh = []
        for value in values:
            key = f"{type(value).__name__} {value!r}"
            if key not in seen:
                seen.add(key)
                fresh.append(value)
        found[name] = tuple(fresh)
    return found


CORPUS = _collected()
VALUES = [(name, value) for name, values in CORPUS.items() for value in values]
# A dozen of them that stand for the rest wherever the whole corpus would only repeat what its grammar was asked.
SHARP: tuple[Any, ...] = (
    "shop\n", "a\r\nb: c", "/a\x00b", " shop", 'sh"op', "%[src]", "${HOME}", "/%2e%2e/", "x" * 9000, "\ud800",
    9_007_199_254_740_993, [],
)  # fmt: skip
