"""Tenants: how many objects of each kind an account may have; operator accounts have no quotas."""

from __future__ import annotations

from apps.accounts.models import Account

DEFAULTS = {
    "routes": 1000,
    "pools": 200,
    "hostnames": 200,
    "certificates": 100,
    "tokens": 50,
    "people": 50,
    "webhooks": 10,
    "requests_per_minute": 1200,
}


def quota(account: Account, name: str) -> int | None:
    """The most that the account may have of `name`, None where there is no limit."""
    if account.is_operator and name != "requests_per_minute":
        return None
    return int(account.quotas.get(name, DEFAULTS[name]))
