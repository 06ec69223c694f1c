"""Lines of accounts that are gone are deleted, and no others, whatever happens meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.drivers.logs.contract import Record, Unavailable
from apps.drivers.logs.memory import MemoryStore
from apps.logs import services

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def test_an_account_whose_lines_cannot_be_deleted_keeps_no_other_waiting(operator: Actor) -> None:
    class Stuck(MemoryStore):
        def delete(self, account: int, before: datetime | None = None) -> int:
            if account == 1_000_000:
                raise Unavailable("The disk is gone.")
            return super().delete(account, before)

    def line(account: int) -> Record:
        return Record(time=NOW, id="1", node="", fleet="", account=account, load_balancer="", listener="")

    store = Stuck()
    store.store("a", [line(1_000_000), line(1_000_001)])
    with pytest.raises(Unavailable):
        services.sweep(store, NOW)
    assert store.accounts() == (1_000_000,)


def test_lines_of_an_account_that_is_made_during_a_look_stay(operator: Actor) -> None:
    class Looked(MemoryStore):
        """Between two looks somebody makes an account, and its first lines come."""

        def accounts(self) -> tuple[int, ...]:
            found = super().accounts()
            if not Account.objects.filter(name="newcomer").exists():
                made = Account.objects.create(name="newcomer", title="Newcomer", kind="customer")
                line = Record(NOW, "1", node="", fleet="", account=made.pk, load_balancer="", listener="")
                self.store("first", [line])
            return found

    store = Looked()
    services.sweep(store, NOW)
    assert store.usage(Account.objects.get(name="newcomer").pk).lines == 1
