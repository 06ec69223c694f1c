"""What every reader of one haproxy.cfg shares: the file, and its criteria."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.importing import context
from apps.importing.files import Files
from apps.importing.haproxy.criteria.criteria import Criteria, Variables
from apps.importing.haproxy.text.sections import Configuration
from apps.importing.naming import Names
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Line


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a port: the header of its section, and the address and interfaces of its line; `quic`: over UDP alone."""

    section: Line
    address: str
    interfaces: tuple[str, ...] = ()
    quic: bool = False


@dataclass(slots=True, kw_only=True)
class Context(context.Context):
    """One import of a haproxy.cfg while it goes on; `ports` are those that sections listen at, by their static IP.

    `chosen` are the backends that a section names and which connections it keeps open, by its header. `types` are the
    media types whose responses get headers of their own.
    """

    configuration: Configuration
    questions: Criteria
    ports: dict[tuple[str, int], Holder] = field(default_factory=dict)
    chosen: dict[Line, tuple[set[str], str | None]] = field(default_factory=dict)
    types: tuple[str, ...] = ()


def context_of(configuration: Configuration, files: Files, options: ImportOptions) -> Context:
    """A context with its reader of questions."""
    return Context(
        ledger=configuration.ledger,
        files=files,
        options=options,
        names=Names(options.prefix),
        configuration=configuration,
        questions=Criteria(files, Variables(), configuration.environment),
    )
