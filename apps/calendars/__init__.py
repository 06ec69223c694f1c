"""CALENDARS: when a schedule falls due, in its own time zone, whatever the clocks do; pure, standard library only."""

from apps.calendars.describing import describe
from apps.calendars.errors import CalendarError
from apps.calendars.instants import instants, next_after, upcoming
from apps.calendars.timing import Timing, read_timing

__all__ = ["CalendarError", "Timing", "describe", "instants", "next_after", "read_timing", "upcoming"]
