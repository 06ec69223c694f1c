"""Filters of lists: the one set for routes, shared by the pages and the API, and that of tags."""

from __future__ import annotations

from typing import Any

import django_filters as filters
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid
from apps.definitions.models import Route
from apps.definitions.shapes.base.words import read_tag


class RouteFilter(filters.FilterSet):  # type: ignore[misc] # django-filter carries no types
    """`q` searches hostname, path and name; the others compare whole names."""

    q = filters.CharFilter(method="search", max_length=253, label="Search")
    hostname = filters.CharFilter(field_name="hostname__name", max_length=253)
    account = filters.CharFilter(field_name="account__name", max_length=63)
    pool = filters.CharFilter(method="of_pool", max_length=127)
    load_balancer = filters.CharFilter(field_name="load_balancer__name", max_length=63)
    action = filters.ChoiceFilter(choices=Route.Action.choices)

    class Meta:
        model = Route
        fields: tuple[str, ...] = ()

    def search(self, rows: QuerySet[Route], _name: str, value: str) -> QuerySet[Route]:
        """Rows in whose hostname, path or name the text occurs."""
        return rows.filter(Q(hostname__name__icontains=value) | Q(path__icontains=value) | Q(name__icontains=value))

    def of_pool(self, rows: QuerySet[Route], _name: str, value: str) -> QuerySet[Route]:
        """Rows with a share of the pool `name` or `account/name`."""
        account, _, pool = value.rpartition("/")
        rows = rows.filter(pools__pool__name=pool)
        return rows.filter(pools__pool__account__name=account) if account else rows


def filter_routes(rows: QuerySet[Route], data: Any) -> QuerySet[Route]:
    """Narrow the rows by the query parameters. Raises Invalid with a pointer per parameter."""
    found = RouteFilter(data, queryset=rows)
    if not found.is_valid():
        raise Invalid(
            FieldError(f"/{field}", "filter", " ".join(str(message) for message in messages))
            for field, messages in found.errors.items()
        )
    narrowed: QuerySet[Route] = found.qs
    return narrowed


def tagged(rows: QuerySet[Any], tag: str) -> QuerySet[Any]:
    """The rows with the tag `key=value`. Raises Invalid."""
    try:
        key, _, value = read_tag(tag).partition("=")
    except GrammarError as error:
        raise Invalid([FieldError("/tag", error.code, error.message)]) from None
    # As text: a look-up by key takes a key of digits for a place in a list. Words of tags hold no quotation marks.
    found: QuerySet[Any] = rows.annotate(of_tags=Cast("tags", TextField()))
    return found.filter(of_tags__contains=f'"{key}": "{value}"')
