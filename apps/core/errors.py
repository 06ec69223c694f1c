"""The errors that services raise and interfaces translate (422, 404, 409)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

# Nobody reads more of them, and a hostile body could make half a million.
MOST_ERRORS = 1_000
# The same sentence for both: who may not see an object does not learn whether it is there.
MISSING = "There is no such object, or you may not see it."
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with what was sent.

    `pointer` is a JSON pointer into the document (`/spec/hostname`), `code` a stable word for programs,
    `detail` a sentence for people that says what to do.
    """

    pointer: str
    code: str
    detail: str


_MORE = FieldError("", "too_many", f"There are more than {MOST_ERRORS:,} errors; correct these first.")


class SpillwayError(Exception):
    """Base of everything that a service refuses; `detail` is a sentence for people.

    `wait_s` says after how many seconds the same may be asked again, where that is of use.
    """

    status = 400
    title = "Refused"
    wait_s: int | None = None

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Invalid(SpillwayError):
    """The input is wrong; nothing was stored. Every error is named, up to MOST_ERRORS of them."""

    status = 422
    title = "Invalid input"

    def __init__(self, field_errors: Iterable[FieldError]) -> None:
        found = tuple(islice(field_errors, MOST_ERRORS + 1))
        self.field_errors = found if len(found) <= MOST_ERRORS else (*found[:MOST_ERRORS], _MORE)
        super().__init__(" ".join(field_error.detail for field_error in self.field_errors))


class NotFound(SpillwayError):
    """There is no such object, or the actor may not see it: the two are never told apart."""

    status = 404
    title = "Not found"


def there(found: T | None, detail: str = MISSING) -> T:
    """What was looked for. Raises NotFound where it is None."""
    if found is None:
        raise NotFound(detail)
    return found


class Forbidden(SpillwayError):
    """The actor may see the object but not do this with it."""

    status = 403
    title = "Not allowed"


class Conflict(SpillwayError):
    """The object moved, or is in use: read again and decide again."""

    status = 409
    title = "Conflict"


class InProgress(Conflict):
    """Something else has to be done first, and soon is; the same may be asked again after `wait_s`."""

    def __init__(self, detail: str, wait_s: int = 2) -> None:
        super().__init__(detail)
        self.wait_s = wait_s


class Stale(Conflict):
    """The version that the sender saw is not the present one any more; `version` is the present one where known."""

    status = 412
    title = "Stale version"

    def __init__(self, detail: str, version: int | None = None) -> None:
        super().__init__(detail)
        self.version = version


class Managed(Conflict):
    """A pipeline manages the object; whoever changes it all the same has to say so."""

    title = "Managed by a pipeline"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.field_errors = (FieldError("/break_glass", "managed", detail),)


class Malformed(SpillwayError):
    """The text that was sent cannot be read at all: not JSON or YAML, too large, too deep, ambiguous."""

    status = 400
    title = "Malformed body"


class Unavailable(SpillwayError):
    """Something that this needs is away or taken for the moment; the same may be asked again after `wait_s`."""

    status = 503
    title = "Temporarily unavailable"

    def __init__(self, detail: str, wait_s: int = 2) -> None:
        super().__init__(detail)
        self.wait_s = wait_s
