"""One network is put into a list or taken out in a hurry: a ban by hand, and its end.

The list is changed as a whole document would change it, but who bans does not have to read and send ten thousand
others. Where policies keep the list out, the network gets nothing within a second, without a reload.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import ip_network
from typing import Any

from apps.accounts.actors import Actor
from apps.compiler.address_spelling import spelled
from apps.compiler.checks.access import MAX_NETWORKS
from apps.core.errors import FieldError, Invalid, NotFound
from apps.definitions import selectors
from apps.definitions.models import NetworkList
from apps.definitions.reading.describing import Document, describe
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.traffic.access import NetworkEntry, NetworkListSpec
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.policies import store_network_list
from apps.definitions.writing.objects import save_partial
from apps.definitions.writing.transactions import change_set

Entries = list[dict[str, Any]]


def ban_network(
    *, actor: Actor, list_id: int, network: object, expires_at: object = None, why: object = None, reason: str = ""
) -> NetworkList:
    """Put a network or an address into the list, or replace its entry there.

    `expires_at` is a moment such as 2027-01-31T00:00:00Z, None for no end; `why` stands beside it for people, `reason`
    in the audit log. Raises NotFound, Forbidden, Invalid.
    """
    given = {"network": as_network(network), "expires_at": expires_at, "reason": why}
    entry = _entry({name: value for name, value in given.items() if value not in (None, "")})

    def change(entries: Entries) -> Entries:
        others = [each for each in entries if each["network"] != entry["network"]]
        if len(others) >= MAX_NETWORKS:
            detail = f"The list has {MAX_NETWORKS} networks already; take some out first."
            raise Invalid([FieldError("/network", "too_many", detail)])
        return [*others, entry]

    return _changed(actor, list_id, change, "ban", reason)


def lift_ban(*, actor: Actor, list_id: int, network: object, reason: str = "") -> NetworkList:
    """Take a network out of the list. Raises NotFound where neither it nor the list is there, Forbidden, Invalid."""
    wanted = _entry({"network": as_network(network)})["network"]

    def change(entries: Entries) -> Entries:
        rest = [each for each in entries if each["network"] != wanted]
        if len(rest) == len(entries):
            raise NotFound(f"{wanted} is not in the list; name the network as it stands there.")
        return rest

    return _changed(actor, list_id, change, "lift ban", reason)


def as_network(text: Any) -> Any:
    """An address stands for the network of it alone; what is none is left as it is."""
    if isinstance(text, str) and "/" not in text and len(text) < 46:
        try:
            return spelled(ip_network(text))
        except ValueError:
            return text
    return text


def _entry(document: dict[str, Any]) -> dict[str, Any]:
    errors: list[FieldError] = []
    found = read(NetworkEntry, document, "", errors)
    if found is None:
        raise Invalid(errors)
    written: dict[str, Any] = write(NetworkEntry, found)
    return written


def _changed(actor: Actor, list_id: int, change: Callable[[Entries], Entries], action: str, reason: str) -> NetworkList:
    actor.may_write()
    with change_set(actor, reason=reason) as changes:
        row = selectors.only(selectors.network_lists(actor), list_id)
        save_partial(changes, row, partial(_apply, changes, row, change), action=action)
    return row


def _apply(changes: ChangeSet, row: NetworkList, change: Callable[[Entries], Entries]) -> tuple[Document, Document]:
    row.refresh_from_db(fields=("entries", "next_expiry"))
    before = describe(row)
    errors: list[FieldError] = []
    spec = read(NetworkListSpec, before | {"entries": change(before["entries"])}, "", errors)
    if spec is None:
        raise Invalid(errors)
    if (after := write(NetworkListSpec, spec)) != before:
        store_network_list(changes, row.account, row, spec)
    return before, after
