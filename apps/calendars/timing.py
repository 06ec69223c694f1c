"""What a schedule says about time, and the check of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from apps.calendars.cron import parse
from apps.calendars.errors import CalendarError
from apps.calendars.walls import LAST_YEAR
from apps.calendars.zones import zone_of

# At the ends of the calendar another zone, or a second less, is no time any more.
YEARS = range(2, LAST_YEAR + 1)
LONGEST_EVERY_S = 366 * 86_400
_LOCAL_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Timing:
    """When: at most one of `cron`, `every_s` (whole seconds) and `at` (local time); none of them is never.

    `cron` and `at` are read in `zone`. A rate counts from `starts_at`, or else from 1970-01-01T00:00:00Z, so that its
    instants do not depend on when anybody looked. Instants lie in [`starts_at`, `ends_at`), both aware.
    """

    cron: str = ""
    every_s: int | None = None
    at: str = ""
    zone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None


def read_timing(
    *,
    cron: str = "",
    every_s: int | None = None,
    at: str = "",
    zone: str = "UTC",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> Timing:
    """The timing, if every field of it can be read; CalendarError names the first that cannot."""
    if sum((bool(cron), every_s is not None, bool(at))) > 1:
        raise CalendarError("cron", "ambiguous_timing", "Give one of cron, every_s and at, not several.")
    zone_of(zone)
    if cron:
        parse(cron)
    if every_s is not None and not 1 <= every_s <= LONGEST_EVERY_S:
        raise CalendarError("every_s", "out_of_range", f"Give a whole number of seconds from 1 to {LONGEST_EVERY_S}.")
    if at:
        _check_year("at", local_time(at))
    _check_bounds(starts_at, ends_at)
    return Timing(cron, every_s, at, zone, starts_at, ends_at)


def local_time(text: str) -> datetime:
    """The local time (naive) that `at` says; CalendarError (field `at`) when it says none."""
    try:
        if not _LOCAL_TIME.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text)
    except ValueError as error:
        detail = "Give a local time without offset as 2026-12-01T10:00:00, a day that exists."
        raise CalendarError("at", "bad_time", detail) from error


def _check_bounds(starts_at: datetime | None, ends_at: datetime | None) -> None:
    for field, moment in (("starts_at", starts_at), ("ends_at", ends_at)):
        if moment is not None and moment.tzinfo is None:
            raise CalendarError(field, "no_offset", "Give an instant with its offset, as 2026-12-01T10:00:00Z.")
        if moment is not None:
            _check_year(field, moment)
    if starts_at is not None and ends_at is not None and ends_at.astimezone(UTC) <= starts_at.astimezone(UTC):
        raise CalendarError("ends_at", "ends_before_start", "The end must be later than the start.")


def _check_year(field: str, moment: datetime) -> None:
    if moment.year not in YEARS:
        raise CalendarError(field, "bad_time", f"Give a time in the years {YEARS[0]} to {YEARS[-1]}.")
