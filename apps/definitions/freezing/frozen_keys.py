"""Keys of tokens as the compiler reads them: those that somebody wrote, then those that were fetched and count now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from apps.compiler.model import authentication as model
from apps.compiler.model.policy import Rules
from apps.core.clock import now
from apps.definitions.models import KeySet
from apps.definitions.shapes.base.words import read_instant

# For how long keys that left their set count where a policy says nothing.
GRACE_S = 3600


class KeySets:
    """The key sets of all accounts, looked up once and only where any rule names one."""

    @cached_property
    def _keys(self) -> dict[tuple[int, str], list[dict[str, str]]]:
        rows = KeySet.objects.values_list("account_id", "url", "keys")
        return {(account, url): keys for account, url, keys in rows}

    def resolved(self, rules: Rules, account: int) -> Rules:
        """The rules with fetched keys beside the written ones: who says either decides both.

        So keys of one issuer never come beside those of another that a policy further away trusts.
        """
        said: Any = rules.jwt
        if said is None:
            return rules
        keys = None if said.keys is None and said.jwks_url is None else list(said.keys or ())
        if keys is not None and said.jwks_url is not None:
            grace = GRACE_S if said.jwks_grace_s is None else said.jwks_grace_s
            keys += counting(self._keys.get((account, said.jwks_url), ()), grace, now())
        block = model.Jwt(said.issuer, said.audience, _distinct(keys), said.claims, said.leeway_s, said.keep_header)
        return replace(rules, jwt=block)


def counting(keys: Iterable[Mapping[str, str]], grace_s: int, moment: datetime) -> list[model.JwtKey]:
    """The keys of a stored set that verify tokens now."""
    since = moment - timedelta(seconds=grace_s)
    counted = (each for each in keys if "gone_at" not in each or read_instant(each["gone_at"]) > since)
    return [model.JwtKey(each["algorithm"], each["pem"], each["kid"]) for each in counted]


def _distinct(keys: Iterable[Any] | None) -> tuple[model.JwtKey, ...] | None:
    if keys is None:
        return None
    return tuple(dict.fromkeys(model.JwtKey(each.algorithm, each.pem, each.kid) for each in keys))
