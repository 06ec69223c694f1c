"""How long a request may take at each pool, and how often it is sent again: what the route says, else the pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apps.compiler.model import servers
from apps.compiler.model.policy import Retries, Rules, Timeouts
from apps.compiler.routing import number_of
from apps.definitions.freezing.frozen_servers import options_of_row
from apps.definitions.models import Pool

SAYS_NOTHING = Timeouts()
REPEATS = Retries()
DEFAULT = servers.Retries()


@dataclass(frozen=True, slots=True)
class Times:
    """What holds at one pool, in ms; `tunnel_ms` is None for HAProxy's hour.

    `retries` are attempts after the first, and `retried_after` the words of what they follow.
    """

    pool: str
    connect_ms: int
    queue_ms: int
    response_ms: int
    tunnel_ms: int | None
    retries: int
    retried_after: tuple[str, ...]
    retry_budget_percent: int | None

    @property
    def after(self) -> str:
        """The same words for people."""
        return ", ".join(self.retried_after).replace("_", " ")


def times_of(rules: Rules, pool_ids: Iterable[str], labels: Mapping[str, str]) -> list[Times]:
    """For each pool of a route with these rules. Raises what `options_of_row` raises."""
    said = rules.timeouts or SAYS_NOTHING
    found = []
    for row in Pool.objects.filter(pk__in=[number_of(each) for each in pool_ids], protocol="http").order_by("pk"):
        pool = options_of_row(row)
        retries, own = pool["retries"] or DEFAULT, rules.retries or REPEATS
        after = retries.on
        if own.after_sending is False:
            after = tuple(each for each in after if each is servers.RetryOn.CONNECT)
        found.append(
            Times(
                labels.get(f"pool-{row.pk}", f"pool-{row.pk}"),
                pool["connect_timeout_ms"],
                pool["queue_timeout_ms"],
                said.response_ms or pool["server_timeout_ms"],
                said.tunnel_ms or pool["tunnel_timeout_ms"],
                retries.attempts if own.attempts is None else own.attempts,
                tuple(map(str, after)),
                retries.budget_percent,
            )
        )
    return found
