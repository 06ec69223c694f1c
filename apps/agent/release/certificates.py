"""Certificates that are replaced, added and taken away in the running worker, with the lists that name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apps.agent.bodies import Manifest, RuntimeBody
from apps.agent.errors import Malformed, Missing, Refusal
from apps.agent.process.proxy import Proxy

SET, UPDATE_LIST = "set_certificate", "update_certificate_list"
OPERATIONS = (SET, UPDATE_LIST)
CERTIFICATE, LIST = re.compile(r"certs/crt-[0-9]{1,18}\.pem"), re.compile(r"certs/lst-[0-9]{1,18}\.list")
PEM = re.compile(rb"(?:-----(?:BEGIN|END) [A-Z0-9 ]{1,40}-----\n|[A-Za-z0-9+/=]{1,76}\n)+")
_VERIFY = (
    r"\[verify optional ca-file certs/client-ca-[0-9a-f]{20}\.pem(?: crl-file certs/client-crl-[0-9a-f]{20}\.pem)?\]"
)
LINE = re.compile(rf"certs/crt-[0-9]{{1,18}}\.pem(?: {_VERIFY})?(?: (?:\*\.)?[a-z0-9.-]+)+")
LARGEST = 15_000  # a payload larger than HAProxy's buffer (16 kB) hangs
COMMIT_SECONDS = 30.0


@dataclass(frozen=True)
class Changes:
    """Certificates to show (path → PEM), which of them are new, lines to add and files to take from lists, and what
    files nobody needs any more.
    """

    shown: Mapping[str, bytes]
    new: frozenset[str]
    added: tuple[tuple[str, str], ...]
    taken: tuple[tuple[str, str], ...]
    gone: tuple[str, ...]
    lists: frozenset[str]

    @property
    def paths(self) -> frozenset[str]:
        """Files that the worker is told of."""
        return self.lists | self.shown.keys()


def prepare(body: RuntimeBody, base: Manifest, release: Path) -> Changes:
    """Read the operations; what changes in a list follows from its text. Raises Malformed, Missing, Refusal."""
    wanted = body.manifest.files
    named = [(each.get("op"), each.get("path")) for each in body.operations if each.get("op") in OPERATIONS]
    for kind, path in named:
        if not isinstance(path, str) or not (CERTIFICATE if kind == SET else LIST).fullmatch(path):
            raise Malformed("An operation on certificates needs the path of a certificate or of a list.")
    found: dict[str, list[str]] = {kind: sorted(str(path) for op, path in named if op == kind) for kind in OPERATIONS}
    if missing := [path for paths in found.values() for path in paths if path not in body.files]:
        raise Missing(missing)
    shown = {path: _pem(body.files[path]) for path in found[SET]}
    new = shown.keys() - base.files.keys()
    if (new and not found[UPDATE_LIST]) or not set(found[UPDATE_LIST]) <= base.files.keys():
        raise Refusal("A certificate that no list of before will name is new; this needs a reload.", "runtime")
    added, taken = [], []
    for path in found[UPDATE_LIST]:
        before, after = _lines((release / path).read_bytes()), _lines(body.files[path])
        added += [(path, line) for line in after if line not in before]
        taken += [(path, _file(line)) for line in before if line not in after]
    gone = sorted(path for path in base.files.keys() - wanted.keys() if CERTIFICATE.fullmatch(path))
    lists = frozenset(found[UPDATE_LIST])
    return Changes(shown, frozenset(new), tuple(added), tuple(taken), tuple(gone), lists)


def _pem(content: bytes) -> bytes:
    """Nothing that would end the message to HAProxy before its time."""
    if len(content) > LARGEST or not PEM.fullmatch(content):
        raise Refusal("A certificate is too large for HAProxy's Runtime API, or is not in PEM.", "runtime")
    return content


def _lines(content: bytes) -> dict[str, None]:
    """The lines of a list in their order."""
    lines = content.decode("ascii", "replace").splitlines()
    if not all(LINE.fullmatch(line) and len(line) <= LARGEST for line in lines):
        raise Refusal("A list of certificates has a line that the Runtime API cannot take safely.", "runtime")
    return dict.fromkeys(lines)


def _file(line: str) -> str:
    return line.partition(" ")[0]


def try_out(changes: Changes, proxy: Proxy) -> None:
    """Have the worker read certificates with their keys, and forget them again. Raises Refusal.

    So nobody has to check all others once more, which takes minutes where there are thousands.
    """
    for path, content in changes.shown.items():
        try:
            _hand_over(path, content, changes, proxy)
            proxy.worker(f"abort ssl cert {path}")
        finally:
            if path in changes.new:
                proxy.worker(f"del ssl cert {path}")


def change(changes: Changes, proxy: Proxy) -> None:
    """Show them, name them in lists, and only then take away. Raises Refusal when the worker objects."""
    for path, content in changes.shown.items():
        _hand_over(path, content, changes, proxy)
        _expect(proxy.worker(f"commit ssl cert {path}", COMMIT_SECONDS), "Success")
    for path, line in changes.added:
        _expect(proxy.worker(f"add ssl crt-list {path} <<\n{line}\n", COMMIT_SECONDS), "Success")
    for path, file in changes.taken:
        _expect(proxy.worker(f"del ssl crt-list {path} {file}", COMMIT_SECONDS), "deleted")
    for path in changes.gone:
        _expect(proxy.worker(f"del ssl cert {path}"), "deleted")


def _hand_over(path: str, content: bytes, changes: Changes, proxy: Proxy) -> None:
    """HAProxy has one such transaction at a time; a certificate that it does not take begins none."""
    if path in changes.new:
        _expect(proxy.worker(f"new ssl cert {path}"), "New empty", "already exists")
    _expect(proxy.worker(f"set ssl cert {path} <<\n{content.decode()}"), "Transaction")


def _expect(answer: str, *words: str) -> None:
    if not any(word in answer for word in words):
        first = (answer.strip().splitlines() or ["it says nothing"])[0]
        raise Refusal(f"HAProxy objects: {first}", "runtime", output=answer)
