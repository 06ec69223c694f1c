"""The one set of filters of the audit log, shared by the page, its exports and the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import django_filters as filters
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from apps.audit.models import Entry
from apps.core.errors import FieldError, Invalid

# The first and the last one have moments that are in no year of another zone.
YEARS = range(2, 9999)


def _in_our_years(at: datetime) -> None:
    """Raise ValidationError for a time that may have no like in UTC."""
    if at.year not in YEARS:
        raise ValidationError(f"Use a time of the years {YEARS[0]} to {YEARS[-1]}.")


class EntryFilter(filters.FilterSet):  # type: ignore[misc] # django-filter carries no types
    """`q` searches the object, the reason and the person; `object` is the beginning of a label; times are ISO 8601."""

    q = filters.CharFilter(method="search", max_length=253, label="Search")
    actor = filters.CharFilter(max_length=150)
    token = filters.CharFilter(max_length=16)
    account = filters.CharFilter(field_name="account__name", max_length=63)
    kind = filters.CharFilter(field_name="object_kind", max_length=40)
    action = filters.CharFilter(max_length=40)
    object = filters.CharFilter(field_name="object_label", lookup_expr="startswith", max_length=400)
    object_id = filters.NumberFilter(min_value=1, max_value=2**63 - 1)
    request_id = filters.CharFilter(max_length=64)
    since = filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte", validators=[_in_our_years])
    until = filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt", validators=[_in_our_years])

    class Meta:
        model = Entry
        fields: tuple[str, ...] = ()

    def search(self, rows: QuerySet[Entry], _name: str, value: str) -> QuerySet[Entry]:
        """Rows in whose object, reason or actor the text occurs."""
        return rows.filter(Q(object_label__icontains=value) | Q(reason__icontains=value) | Q(actor__icontains=value))


NAMES = frozenset(EntryFilter.base_filters)


def filter_entries(rows: QuerySet[Entry], data: Any) -> QuerySet[Entry]:
    """Narrow the rows by the query parameters. Raises Invalid with a pointer per parameter."""
    found = EntryFilter(data, queryset=rows)
    if not found.is_valid():
        raise Invalid(
            FieldError(f"/{field}", "filter", f"{field}: {' '.join(str(message) for message in messages)}")
            for field, messages in found.errors.items()
        )
    narrowed: QuerySet[Entry] = found.qs
    return narrowed
