"""The shapes of a policy's rewrites: host, path and query as servers get them, redirects and cookies as clients do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.compiler.matching import patterns
from apps.compiler.model import policy as model
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import SORTED, About, Data, Distinct, Grammar, Shape
from apps.definitions.shapes.base.words import Boolean, Pairs, Path, ServerHost, at_most, read_pairs, sorted_pairs, text

MOST_PARAMETERS = 10
NAME = r"^[A-Za-z0-9_.-]{1,64}$"
PARAMETER = text(rewriting.parameter, "the name of a parameter", 64, NAME)


def _read_parameters(value: object) -> Pairs:
    found = read_pairs(value, rewriting.parameter, rewriting.parameter_value)
    if len(found) > MOST_PARAMETERS:
        raise GrammarError("too_many", f"Use at most {MOST_PARAMETERS} parameters.")
    return found


PARAMETERS = Grammar(
    _read_parameters,
    {
        "type": "object",
        "title": f"at most {MOST_PARAMETERS} parameters with a value each",
        "additionalProperties": {"type": "string", "minLength": 0, "maxLength": 256},
    },
    sorted_pairs,
)


@dataclass(frozen=True, slots=True)
class Rewrite(model.Rewrite, Shape):
    """The host, path and query that servers get instead of those that the client requested."""

    sparse: ClassVar = True

    host: Annotated[
        ServerHost | None, About("The Host header that servers receive.", "Host", example="internal.example.com")
    ] = None
    path: Annotated[Path | None, About("The full path that servers receive.", "Path")] = None
    drop_query: Annotated[Boolean | None, About("Whether the query is removed.", "Drop the query")] = None
    path_regex: Annotated[
        Annotated[str, text(patterns.pattern, "a regular expression", patterns.LONGEST)] | None,
        About("Paths that match this pattern as a whole are replaced.", "Path pattern", example="/v1/([^/]*)/(.*)"),
    ] = None
    path_replacement: Annotated[
        Annotated[str, text(rewriting.replacement, "a path", 256)] | None,
        About(r"The new path; \1 to \9 are groups of the pattern.", "Replaced by", example=r"/items/\2"),
    ] = None
    query_keep: Annotated[
        tuple[Annotated[str, PARAMETER], ...] | None,
        at_most(MOST_PARAMETERS, "parameters"),
        Distinct(),
        SORTED,
        About("Query parameters that servers receive; all others are removed.", "Keep parameters"),
    ] = None
    query_drop: Annotated[
        tuple[Annotated[str, PARAMETER], ...] | None,
        at_most(MOST_PARAMETERS, "parameters"),
        Distinct(),
        SORTED,
        About("Query parameters that are removed.", "Drop parameters"),
    ] = None
    query_set: Annotated[
        Annotated[Pairs, PARAMETERS] | None,
        About("Query parameters with the value that servers receive.", "Set parameters"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """A pattern and its replacement belong together; a whole path leaves nothing to replace."""
        regex, new = sent.get("path_regex"), sent.get("path_replacement")
        if (regex is None) != (new is None):
            missing = "path_regex" if regex is None else "path_replacement"
            yield FieldError(f"/{missing}", "missing", "Set path_regex and path_replacement together.")
        if regex is not None and sent.get("path") is not None:
            yield FieldError("/path", "both", "Use path or path_regex, not both.")
        if isinstance(regex, str) and isinstance(new, str):
            most = rewriting.groups_of(regex)
            if rewriting.highest_group(new) > most:
                yield FieldError("/path_replacement", "group", f"The pattern has {most} groups.")


@dataclass(frozen=True, slots=True)
class ResponseRewrite(model.ResponseRewrite, Shape):
    """What clients receive instead of what servers say in Location and Set-Cookie."""

    sparse: ClassVar = True

    location_prefix: Annotated[
        Annotated[str, text(rewriting.location, "the beginning of a URL", 512)] | None,
        About(
            "How a Location of servers begins, such as their own address; others stay as they are.",
            "Location begins with",
            example="http://app.internal:8080/",
        ),
    ] = None
    location_replacement: Annotated[
        Annotated[str, text(rewriting.location, "the beginning of a URL", 512)] | None,
        About("How clients receive it.", "Replace it by", example="/"),
    ] = None
    secure_cookies: Annotated[
        Boolean | None,
        About(
            "Whether cookies of servers get the attribute Secure where clients use https.",
            "Add Secure to cookies",
        ),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Of the beginning and what replaces it, none stands alone."""
        for name, other in (("location_prefix", "location_replacement"), ("location_replacement", "location_prefix")):
            if sent.get(name) is not None and sent.get(other) is None:
                yield FieldError(f"/{other}", "missing", f"Fill in {other} as well, or leave out {name}.")
