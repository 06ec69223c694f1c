"""Which changes of certificates a running process can be told, without a reload.

* A certificate is replaced: the same names, and it fits into one message to HAProxy.
* Certificates come and go as a whole, in lists of listeners that show nothing to strangers (`strict-sni`): the order of
  such a list says nothing as long as no name stands in two lines.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

from apps.compiler.bundle import Bundle
from apps.compiler.model.operations import SetCertificate, UpdateCertificateList

# HAProxy takes a certificate with its chain and key, or a line of a list, in one message of at most its buffer.
LARGEST = 15_000
MOST = 100
_CERTIFICATE, _LIST = re.compile(r"certs/crt-[0-9]+\.pem"), re.compile(r"certs/lst-[0-9]+\.list")
Change = SetCertificate | UpdateCertificateList
Line = tuple[str, ...]


def operations(running: Bundle, wanted: Bundle) -> tuple[Change, ...]:
    """Certificates first, then the lists that name them; nothing where a reload is needed for any of them."""
    lists = [path for path in sorted(wanted.files) if _LIST.fullmatch(path) and _differs(path, running, wanted)]
    shown = [path for path in sorted(wanted.files) if _CERTIFICATE.fullmatch(path) and _differs(path, running, wanted)]
    possible = all(_can_be_told(path, running, wanted) for path in lists)
    possible = possible and all(_is_for_clients(path, wanted) for path in shown) and len(shown) <= MOST
    possible = possible and (bool(lists) or all(path in running.files for path in shown))
    return (*map(SetCertificate, shown), *map(UpdateCertificateList, lists)) if possible else ()


def taken_away(running: Bundle, wanted: Bundle) -> set[str]:
    """Certificates that are there no more."""
    return {path for path in running.files.keys() - wanted.files.keys() if _CERTIFICATE.fullmatch(path)}


def _differs(path: str, running: Bundle, wanted: Bundle) -> bool:
    return running.files.get(path) != wanted.files[path]


def _is_for_clients(path: str, wanted: Bundle) -> bool:
    """Connections to servers would keep the certificate that they began with."""
    return len(wanted.files[path]) <= LARGEST and f" crt {path}".encode() not in wanted.files.get("haproxy.cfg", b"")


def _can_be_told(path: str, running: Bundle, wanted: Bundle) -> bool:
    strict = f" crt-list {path} strict-sni".encode()
    if path not in running.files or any(strict not in each.files.get("haproxy.cfg", b"") for each in (running, wanted)):
        return False
    before, after = _lines(running, path), _lines(wanted, path)
    kept, added, taken = before & after, after - before, before - after
    files = Counter(line[0] for line in chain(kept, added, taken))
    names = Counter(name for line in chain(kept, added) for name in line[1:] if "/" not in name)
    whole = all(files[line[0]] == 1 for line in chain(added, taken))
    alone = all(names[name] == 1 for line in added for name in _hosts(line))
    return whole and alone and len(added) + len(taken) <= MOST and all(len(" ".join(line)) <= LARGEST for line in added)


def _lines(bundle: Bundle, path: str) -> set[Line]:
    return {tuple(line.split()) for line in bundle.files[path].decode("ascii").splitlines()}


def _hosts(line: Line) -> list[str]:
    """The names of a line; what stands in brackets has no dot, or a slash."""
    return [word for word in line[1:] if "." in word and "/" not in word]
