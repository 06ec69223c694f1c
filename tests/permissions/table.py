"""The whole table, how many checks it stands for, and itself as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.permissions.adopting_rows import ADOPTING
from tests.permissions.alert_rows import OF_ALERTS
from tests.permissions.api_rows import API
from tests.permissions.callers import Caller, callers_of, changes_nothing, main_callers_of, sees_nothing
from tests.permissions.canary_rows import CANARIES
from tests.permissions.capacity_rows import CAPACITY
from tests.permissions.cloud_page_rows import CLOUD_PAGES
from tests.permissions.cloud_rows import CLOUDS
from tests.permissions.fleet_page_rows import FLEET_PAGES
from tests.permissions.foreign_ids import FOREIGN_IDS
from tests.permissions.kind_rows import OF_KINDS
from tests.permissions.page_rows import PAGES
from tests.permissions.replacement_rows import REPLACEMENTS
from tests.permissions.rows import Row
from tests.permissions.schedule_api_rows import SCHEDULES_API
from tests.permissions.schedule_page_rows import SCHEDULE_PAGES
from tests.permissions.search_rows import OF_SEARCHES
from tests.permissions.sign_in_rows import SIGN_IN
from tests.permissions.state_rows import STATE
from tests.permissions.status_rows import OF_STATUS
from tests.permissions.zone_page_rows import ZONE_PAGES

TABLE = (
    *ADOPTING,
    *OF_ALERTS,
    *OF_SEARCHES,
    *OF_STATUS,
    *API,
    *CAPACITY,
    *REPLACEMENTS,
    *CANARIES,
    *CLOUDS,
    *SCHEDULES_API,
    *OF_KINDS,
    *PAGES,
    *SCHEDULE_PAGES,
    *SIGN_IN,
    *STATE,
    *ZONE_PAGES,
    *CLOUD_PAGES,
    *FLEET_PAGES,
)


def counts(callers: Callable[[Row], Mapping[Caller, int]], strangers: int) -> dict[str, int]:
    """Checks by what they look at: of these callers for each row, and of so many roles of strangers for each id."""
    asked = [(row, caller, code) for row in TABLE for caller, code in callers(row).items()]
    return {
        "answers compared with the table": len(asked),
        "foreign objects compared with missing ones": sum(sees_nothing(*each) for each in asked),
        "requests that must change nothing": sum(changes_nothing(*each) for each in asked),
        "foreign ids in query, body, list, cursor and form": len(FOREIGN_IDS) * strangers,
    }


def as_text() -> str:
    """A line per row: method, name, and the codes of other | own | operators; then how many checks they stand for."""
    width = max(len(str(row)) for row in TABLE)
    lines = [f"{row!s:<{width}}  {row.codes}" for row in TABLE]
    each_change, each_tag = counts(main_callers_of, 1), counts(callers_of, 3)
    lines += ["", "make test  make test-all"]
    lines += [f"{number:>9,}  {each_tag[what]:>13,}  {what}" for what, number in each_change.items()]
    totals = f"{sum(each_change.values()):>9,}  {sum(each_tag.values()):>13,}"
    return "\n".join([*lines, f"{totals}  checks of {len(TABLE)} rows"])
