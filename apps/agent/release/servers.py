"""Servers that come and go while HAProxy runs: each is told to the worker as its files say it.

What runs is what a reload of these files would start: the words of a new server are read from them, with what
`default-server` says. One that leaves gets no more requests at once; it is forgotten when its last connection is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.agent.errors import Refusal
from apps.agent.process.proxy import Proxy

WORD = re.compile(r"[A-Za-z0-9.:_\[\]-]{1,256}")
# Of names that are looked up; an address needs neither.
UNTOLD = ("init-addr", "resolvers")
ADDED, DELETED, ABSENT, THERE = "New server registered.", "Server deleted.", "No such server", "Already exists"
BUSY = "still has connections"
# HAProxy keeps what its file gave it with `resolvers`: it stays in maintenance, without a request, until a reload.
KEPT = "cannot be removed at runtime"


def words_of(config: str, pool: str, server: str) -> tuple[list[str], bool]:
    """What `add server` is told after the name: the address, then defaults, then its own words; and if it is disabled.

    Raises Refusal.
    """
    sections: dict[str, list[list[str]]] = {}
    heads: dict[str, list[str]] = {}
    name = ""
    for line in config.splitlines():
        words = line.split()
        if words and not line.startswith((" ", "#")):
            name = " ".join(words[:2])
            heads[name] = words
        elif words:
            sections.setdefault(name, []).append(words)
    section = f"backend {pool}"
    head = heads.get(section, [])
    named = f"defaults {head[3]}" if len(head) > 3 and head[2] == "from" else ""
    lines = [*sections.get(named, ()), *sections.get(section, ())]
    own = [words for words in sections.get(section, ()) if words[:2] == ["server", server]]
    if len(own) != 1:
        raise Refusal(f"The files have no server {server} in {pool}.", "runtime")
    address, said = own[0][2].strip("'\""), list[str]()
    for words in lines:
        said += words[1:] if words[0] == "default-server" else []
    told = [address, *_told([*said, *own[0][3:]])]
    if not all(WORD.fullmatch(word) for word in told):
        raise Refusal(f"What the files say of {server} cannot be told to a running HAProxy.", "runtime")
    return told, "disabled" in own[0]


def _told(words: list[str]) -> Iterator[str]:
    """Without what an address does not need, and `disabled`: it comes in maintenance anyway, and may stay there."""
    skip = False
    for word in words:
        if skip or word == "disabled":
            skip = False
            continue
        skip = word in UNTOLD
        if not skip:
            yield word


def add(proxy: Proxy, config: str, pool: str, server: str) -> None:
    """Let the worker have it, checked and ready as the files say; raises Refusal, OSError."""
    (words, disabled), name = words_of(config, pool, server), f"{pool}/{server}"
    command = f"add server {name} {' '.join(words)}"
    answer = proxy.worker(command)
    if THERE in answer and forget(proxy, name):  # one that was to go and had connections
        answer = proxy.worker(command)
    if ADDED not in answer:
        raise Refusal(f"HAProxy objects: {answer.strip()[:200]}", "runtime", output=answer)
    ready = [f"enable health {name}"] if "check" in words else []
    if not disabled:
        ready.append(f"enable server {name}")
    answer = proxy.worker(";".join(ready)).strip() if ready else ""
    if answer:
        raise Refusal(f"HAProxy objects: {answer.splitlines()[0]}", "runtime", output=answer)


def leave(proxy: Proxy, name: str) -> bool:
    """Send it no more requests, and let it go; False while it has connections. Raises Refusal, OSError."""
    answer = proxy.worker(f"set server {name} state maint").strip()
    if answer:
        raise Refusal(f"HAProxy objects: {answer.splitlines()[0]}", "runtime", output=answer)
    return forget(proxy, name)


def forget(proxy: Proxy, name: str) -> bool:
    """Whether a server in maintenance is gone as far as it can be; False while it has connections.

    Raises Refusal, OSError.
    """
    answer = proxy.worker(f"del server {name}")
    if any(word in answer for word in (DELETED, ABSENT, KEPT)):
        return True
    if BUSY in answer:
        return False
    raise Refusal(f"HAProxy objects: {answer.strip()[:200]}", "runtime", output=answer)
