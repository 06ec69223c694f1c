"""What is wrong with a timing, where, and what to do about it."""

from __future__ import annotations


class CalendarError(ValueError):
    """A timing that cannot be read: the field of it, a code for programs, a sentence for people."""

    def __init__(self, field: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.code = code
        self.detail = detail
