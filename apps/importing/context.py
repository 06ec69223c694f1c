"""What every reader of one configuration shares: its verdicts, its files, and what was asked for beside it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.importing.files import Files
from apps.importing.logic.questions import Questions
from apps.importing.naming import Names
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Ledger, Line

FORWARDED_PROTO = "x-forwarded-proto"
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
TOLD = (
    "X-Forwarded-Proto is believed from private networks; name those of the proxy in front (client_address). "
    "A request without it has the scheme of its port."
)


@dataclass(slots=True)
class Context:
    """One import while it goes on. `needs` are open questions: what must be said before the result can be applied."""

    ledger: Ledger
    files: Files
    options: ImportOptions
    questions: Questions
    names: Names
    needs: dict[str, None] = field(default_factory=dict)
    stand_ins: dict[str, list[str]] = field(default_factory=dict)
    network_lists: dict[tuple[str, ...], str] = field(default_factory=dict)

    def name(self, kind: str, text: str, apart: str = "") -> str:
        """A name of ours for one of the old file; equal ones get equal names, different ones different names."""
        return self.names.name(kind, text, apart)

    def free_name(self, kind: str, text: str, taken: Container[str]) -> str:
        """The same for one whose name is not to be among these."""
        while (name := self.name(kind, text)) in taken:
            text += "-more"
        return name

    def network_list(self, networks: tuple[str, ...], called: str) -> str:
        """The name of a list of these networks."""
        if networks not in self.network_lists:
            called = called or f"networks-{len(self.network_lists) + 1}"
            taken = frozenset(self.network_lists.values())
            self.network_lists[networks] = self.free_name("NetworkList", called, taken)
        return self.network_lists[networks]

    def need(self, sentence: str) -> None:
        """Something that must be said before this can be applied."""
        self.needs[sentence] = None


def say_unknown(context: Context, line: Line, why: str, *, gone: bool) -> None:
    """A question that cannot be asked; a rule that is `gone` holds nowhere. A missing file can still be given."""
    if why.endswith("was not given"):
        context.need(f"{why[0].upper()}{why[1:]} (--files).")
        context.ledger.differs(line, f"{why[0].upper()}{why[1:]}, so this holds nowhere.")
    elif gone:
        context.ledger.impossible(line, f"This cannot be asked: {why}.")
    else:
        context.ledger.differs(line, f"This cannot be asked: {why}.")


def believe(context: Context, listeners: Iterable[dict[str, Any]], asking: Iterable[Line], said: str = TOLD) -> bool:
    """Have the listeners trust what proxies say of scheme and client, where lines ask for it; whether any does."""
    lines = list(asking)
    for line in lines:
        context.ledger.differs(line, said)
    for listener in listeners if lines else ():
        trusted = listener.setdefault("client_address", {})
        if not trusted.get("forwarded_from"):
            trusted["forwarded_from"] = list(PRIVATE)
    return bool(lines)


def documents_of_lists(context: Context) -> list[tuple[str, str, Mapping[str, object]]]:
    """Kind, name and specification of each list of networks."""
    return [
        ("NetworkList", name, {"entries": [{"network": network} for network in networks]})
        for networks, name in context.network_lists.items()
    ]


def document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object as it is applied, before its owner is said (results/owners.py)."""
    return {"kind": kind, "name": name, "spec": dict(spec)}
