"""Python reads this at its start where PYTHONPATH names the folder: its machine's clock is off.

`CLOCK_OFF_S` says by how much. What only counts seconds goes right, as on a machine whose clock was set wrong.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from typing import Any

OFF_S = float(os.environ.get("CLOCK_OFF_S", "0"))
right_time, right_datetime = time.time, dt.datetime


class _Kind(type):
    """What was made by the class that was there before is of this one, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, right_datetime)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, right_datetime)


class _WrongDatetime(dt.datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return right_datetime.now(tz) + dt.timedelta(seconds=OFF_S)

    @classmethod
    def utcnow(cls) -> Any:
        return right_datetime.now(dt.UTC).replace(tzinfo=None) + dt.timedelta(seconds=OFF_S)


if OFF_S:
    time.time = lambda: right_time() + OFF_S
    dt.datetime = _WrongDatetime  # type: ignore[misc]  # that is the point
