"""The rendered files read back as data, so that two bundles can be compared."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler.targets.haproxy.verify.config_verification import tokenize_line


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of haproxy.cfg: the section it stands in (`backend pool-17`) and its words."""

    section: str
    words: tuple[str, ...]

    @property
    def is_server(self) -> bool:
        """Whether the line describes a server of a backend."""
        return self.words[0] == "server"

    @property
    def server_identity(self) -> tuple[str, ...]:
        """A server's words without what can be changed at run time: its weight, its slots and `disabled`."""
        words = [word for word in self.words if word != "disabled"]
        for changeable in ("weight", "maxconn"):
            if changeable in words:
                index = words.index(changeable)
                words[index : index + 2] = [changeable]
        return tuple(words)

    @property
    def server_weight(self) -> int:
        """The weight of a server line, 0–256."""
        return int(self.words[self.words.index("weight") + 1])

    @property
    def server_maxconn(self) -> int | None:
        """How many requests the server gets at once, where that is bounded."""
        return int(self.words[self.words.index("maxconn") + 1]) if "maxconn" in self.words else None


def read_config(content: bytes) -> list[Statement]:
    """All statements of a haproxy.cfg that this package rendered."""
    statements: list[Statement] = []
    section = ""
    for line in content.decode("ascii").split("\n"):
        words = tuple(token.text for token in tokenize_line(line))
        if not words:
            continue
        if not line.startswith(" "):
            section = " ".join(words[:2])
        statements.append(Statement(section, words))
    return statements


def read_map(content: bytes) -> dict[str, str]:
    """Key → value of a map file."""
    lines = content.decode("ascii").splitlines()
    return dict(line.split(" ", 1) for line in lines)
