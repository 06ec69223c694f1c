"""The shape of a StatusPage: what visitors read of an account, in words that they know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import SORTED, About, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, Name, Title, at_most

MOST_COMPONENTS, MOST_ROUTES, MOST_RULES = 30, 50, 20


@dataclass(frozen=True, slots=True)
class StatusComponent(Shape):
    """One thing that visitors know, and the routes that it stands for."""

    name: Annotated[Title, About("What visitors call it.", "Name", example="Checkout", missing="Name the component.")]
    routes: Annotated[
        tuple[Name, ...],
        at_most(MOST_ROUTES, "routes in one component"),
        Distinct(),
        SORTED,
        About("Names of routes of the account that lead to pools.", "Routes", example="shop-checkout"),
    ] = ()

    def contradictions(self) -> Iterator[FieldError]:
        """A component without a route would never have a state."""
        if not self.routes:
            yield FieldError("/routes", "missing", "Name at least one route.")


@dataclass(frozen=True, slots=True)
class StatusPageSpec(Shape):
    """What visitors read of an account: how its components are, and what people write about it."""

    title: Annotated[
        Title, About("What stands on top of the page.", "Title", "", "Acme", missing="Fill in a title for visitors.")
    ]
    public: Annotated[
        Boolean,
        About(
            "Whether everybody can read it at `/status/<name>/` without signing in. Default: people of the account.",
            "Public",
            "Everybody can read it without signing in, at /status/ and its name.",
        ),
    ] = False
    components: Annotated[
        tuple[StatusComponent, ...],
        at_most(MOST_COMPONENTS, "components on one page"),
        Distinct(("name",)),
        About("What the page is about, by name.", most=MOST_COMPONENTS),
    ] = ()
    rules: Annotated[
        tuple[Name, ...],
        at_most(MOST_RULES, "rules on one page"),
        Distinct(),
        SORTED,
        About(
            "Alert rules that watch pools. Their alerts open and resolve incidents on the components that they touch.",
            "Rules that open incidents",
            "Names of alert rules that watch pools, such as pool-down. Default: people alone open incidents.",
            "pool-down",
        ),
    ] = ()
