"""The one set of filters of route lists, shared by the pages and the API."""

from __future__ import annotations

from typing import Any

import django_filters as filters
from django.db.models import Q, QuerySet

from apps.core.errors import FieldError, Invalid
from apps.definitions.models import Route


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
