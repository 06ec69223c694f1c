"""How long to leave alone what failed: twice as long each time, or as long as it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST_WISH = timedelta(hours=24)
# More doublings than any pause needs to reach its longest, and few enough for a timedelta.
MOST_DOUBLINGS = 20


def pause_after(failures: int, *, first: timedelta, longest: timedelta) -> timedelta:
    """`first` after one failure, twice as long after each more in a row, at most `longest`."""
    doubled: timedelta = first * (1 << min(max(failures - 1, 0), MOST_DOUBLINGS))
    return min(doubled, longest)


def retry_after(headers: Mapping[str, str], moment: datetime) -> timedelta | None:
    """What `Retry-After` asks for, in seconds or as a date, at most a day; None without a sensible one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) < 9:
        return min(timedelta(seconds=int(text)), LONGEST_WISH)
    try:
        wished = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    wished = wished if wished.tzinfo else wished.replace(tzinfo=UTC)
    return min(max(wished - moment, timedelta()), LONGEST_WISH)
