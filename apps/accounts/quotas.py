"""How many objects an account may have, and what its traffic may take; operator accounts have no quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apps.accounts.models import Account
from apps.accounts.quota_bounds import DEFAULTS
from apps.core.errors import FieldError, Invalid


def quota(account: Account, name: str) -> int | None:
    """The most that the account may have of `name`, None where there is no limit."""
    if account.is_operator and name != "requests_per_minute":
        return None
    return int(account.quotas.get(name, DEFAULTS[name]))


def quotas_of(account: Account) -> Mapping[str, int | None]:
    """Every quota of the account by name, in the order in which people read them."""
    return {name: quota(account, name) for name in DEFAULTS}


def lock_quotas(*accounts: Account) -> None:
    """Let only one transaction at a time count what these accounts have and add to it, until commit.

    SQLite has one writer at a time (immediate transactions) and needs nothing.
    """
    wanted = {account.pk for account in accounts}
    # Without the key: rows that only refer to the account need not wait. In one order: nobody waits in a circle.
    rows = Account.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
    list(rows.values_list("pk"))


def error_over(account: Account, name: str, count: int, pointers: Sequence[str] = ()) -> FieldError | None:
    """What is wrong with an account that has `count` of `name`, None within the quota.

    `pointers` are where what is added stands in what was sent, in its order: the first one too many is named.
    """
    most = quota(account, name)
    if most is None or count <= most:
        return None
    noun = name.replace("_", " ").replace("ips", "IPs")
    detail = (
        f"The quota of {account.title} is {most:,} {noun}; this would make {count:,}. "
        f"Delete some, or ask an operator to raise the quota."
    )
    pointer = pointers[max(0, len(pointers) - (count - most))] if pointers else ""
    return FieldError(pointer, "quota", detail)


def refuse_over_quota(account: Account, name: str, count: int, pointer: str) -> None:
    """Raise Invalid (code quota) when the account would have more of `name` than it may.

    Call it inside the transaction that adds, after `lock_quotas`, with the number that there would be.
    """
    if field_error := error_over(account, name, count, [pointer]):
        raise Invalid([field_error])
