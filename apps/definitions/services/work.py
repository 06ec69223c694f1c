"""DEFINE, inside a write: what one transaction has looked up, found wrong, and touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Model

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.core.errors import Conflict, Fault, Invalid
from apps.definitions.concerns import stacks_of, stacks_of_hostname, stacks_of_load_balancers, zones_of
from apps.definitions.models import Certificate, LoadBalancer, Pool, Zone
from apps.definitions.selectors import fleets_of, fleets_of_hostname, fleets_of_load_balancers
from apps.definitions.services.intent import want_zone_push
from apps.definitions.services.managed import said
from apps.definitions.sharing import lock_shared, usable_pools, usable_zones
from apps.fleet.models import AddressPool, CloudAccount, Fleet, Region, Stack, StaticIP
from apps.fleet.selectors import overflow_orders
from apps.fleet.services import want_push, want_stack_push

if TYPE_CHECKING:
    from apps.definitions.services.schedules import Booked

T = TypeVar("T", bound=Model)


class Work:
    """One transaction: who works, why, and what it did so far.

    `pointer` is where the object at hand stood in what was sent; every fault is noted below it. `broken` holds the
    objects of the same document that were refused, so that those who name them are not blamed as well; `coming` those
    of the whole document, and `later` what waits until all of them are stored. `grown` holds what
    accounts had of their quotas before (quotas.py).
    `routed` are load balancers and hostnames whose routes came, went or changed, `saved_routes` where the saved ones
    stood in what was sent, `saved` that of every object by its kind. `seen` are the versions in which rows were met
    first; `break_glass` says that somebody changes objects of a pipeline on purpose. `booked` are changes that
    schedules would make, tried in the end. `emptied` (pointer, row, what it had) and `pruned_routes` (by load balancer)
    are what emptying.py looks at, `losses` what somebody confirmed. `kept` are fields that a document (`of_document`)
    does not own (field_owners.py).
    """

    def __init__(self, actor: Actor, *, reason: str = "", manager: str = "") -> None:
        self.actor = actor
        self.reason = reason
        self.manager = manager or said().manager
        self.break_glass = said().break_glass
        self.take_over = said().take_over
        self.seen: dict[tuple[str, int, str], int] = {}
        self.routed: set[tuple[int, str]] = set()
        self.saved_routes: dict[int, str] = {}
        self.saved: dict[str, dict[int, str]] = {}
        self.pointer = ""
        self.faults: list[Fault] = []
        self.broken: set[tuple[str, str]] = set()
        self.coming: set[tuple[str, str]] = set()
        self.later: list[Callable[[], None]] = []
        self.emptied: list[tuple[str, Any, list[str]]] = []
        self.pruned_routes: dict[int, list[str]] = {}
        self.losses: list[str] = []
        self.of_document = False
        self.kept: list[str] = []
        self.booked: list[Booked] = []
        self.touched: dict[int, Fleet] = {}
        self.touched_stacks: dict[int, Stack] = {}
        self.touched_zones: dict[int, Zone] = {}
        self.released: set[int] = set()
        self.grown: dict[tuple[str, int], tuple[Account, int]] = {}
        self._found: dict[tuple[Any, ...], Any] = {}

    def fault(self, place: str, code: str, detail: str) -> None:
        """Note a fault at `place`, a pointer within the object at hand."""
        self.faults.append(Fault(self.pointer + place, code, detail))

    def touch(self, fleets: Iterable[Fleet]) -> None:
        """These fleets must be pushed to once the transaction is committed."""
        self.touched.update((fleet.pk, fleet) for fleet in fleets)

    def touch_stacks(self, stacks: Iterable[Stack]) -> None:
        """As `touch`, for stacks."""
        self.touched_stacks.update((stack.pk, stack) for stack in stacks)

    def touch_zones(self, zones: Iterable[Zone]) -> None:
        """As `touch`, for DNS zones."""
        self.touched_zones.update((zone.pk, zone) for zone in zones)

    def concern(self, row: Model) -> None:
        """Touch every fleet, stack and zone that a change of the row concerns."""
        self.touch(fleets_of(row))
        self.touch_stacks(stacks_of(row))
        self.touch_zones(zones_of(row))

    def concern_hostname(self, claim: Hostname) -> None:
        """Touch what serves the name, or names under it when it is a wildcard."""
        self.touch(fleets_of_hostname(claim))
        self.touch_stacks(stacks_of_hostname(claim))

    def touch_everywhere(self) -> None:
        """As `touch`, for every fleet: places and distances concern all of them."""
        self.touch(Fleet.objects.all())

    def watch_orders(self) -> None:
        """Remember which regions are nearest to each now: when that has changed in the end, every fleet is touched."""
        self.once(("orders",), overflow_orders)

    def catch_up(self) -> None:
        """Do what waited until every object of the document is stored."""
        for act in self.later:
            act()
        self.later.clear()
        if ("orders",) in self._found and self._found.pop(("orders",)) != overflow_orders():
            self.touch_everywhere()
            self.touch_stacks(Stack.objects.all())

    def touch_load_balancer(self, pk: int) -> None:
        """As `touch`, for the fleets and stacks of a load balancer, looked up once."""
        self.touch(self.once(("fleets", pk), lambda: list(fleets_of_load_balancers([pk]))))
        self.touch_stacks(self.once(("stacks", pk), lambda: list(stacks_of_load_balancers([pk]))))

    def once(self, key: tuple[Any, ...], look_up: Callable[[], Any]) -> Any:
        """What `look_up` answered the first time that the key was asked for."""
        if key not in self._found:
            self._found[key] = look_up()
            self.saw(self._found[key])
        return self._found[key]

    def saw(self, row: Any) -> None:
        """Note the version of a row that this transaction builds on; other values have none."""
        if isinstance(row, Model) and hasattr(row, "version") and hasattr(row, "name"):
            key = (type(row).__name__, getattr(row, "account_id", 0), row.name)
            self.seen.setdefault(key, row.version)

    def forget(self, *key: Any) -> None:
        """Look up again next time: an object with this key was just made or changed."""
        self._found.pop(key, None)

    def remember(self, row: Model | None, *key: Any) -> None:
        """Answer `once` with this row."""
        self._found[key] = row

    def account(self, name: str | None) -> Account:
        """The owner of the object at hand. A customer's objects belong to its own account, whatever else exists."""
        own = self.actor.account
        if name is None or name == own.name:
            return own
        found: Account | None = None
        if self.actor.is_operator:
            found = self.once(("Account", name), lambda: Account.objects.filter(name=name).first())
            if found is None and ("Account", name) not in self.broken:
                self.fault("/account", "unknown", f"There is no account {name}.")
        else:
            self.fault("/account", "account", f"Leave the account out: your objects belong to {own.name}.")
        if found is None:
            raise Invalid(self.take_faults())
        return found

    def take_faults(self) -> list[Fault]:
        """The faults so far, handed over."""
        taken, self.faults = self.faults, []
        return taken

    def place(self, model: type[T], name: str | None, place: str) -> T | None:
        """A region, fleet, stack, static IP or load balancer by name; None and a fault when there is none."""
        if name is None:
            return None
        kind = model.__name__
        row: T | None = self.once((kind, name), lambda: model._default_manager.filter(name=name).order_by("pk").first())
        if row is None and (kind, name) not in self.broken:
            self.fault(place, "unknown", f"There is no {WORDS[model]} {name}.")
        return row

    def owned(self, model: type[T], owner: Account, reference: str | None, place: str) -> T | None:
        """A pool, zone or certificate by reference, as `owner` sees it; None and a fault when there is none.

        Customers name their own, and pools and zones that an operator shares with them; what else belongs to others
        does not exist for them.
        """
        if reference is None:
            return None
        account, _, name = reference.rpartition("/")
        account = account or owner.name
        row: Any = None
        usable = USABLE.get(model)
        if usable and account != owner.name and not self.actor.is_operator:
            lock_shared([owner.name])
            shared = usable(owner).select_related("account").filter(account__name=account, name=name)
            row = self.once(("shared", model.__name__, owner.pk, reference), shared.first)
        elif account == owner.name or self.actor.is_operator:
            row = self.once(
                (model.__name__, account, name),
                lambda: (
                    model._default_manager.select_related("account").filter(account__name=account, name=name).first()
                ),
            )
        if row is None and (model.__name__, f"{account}/{name}") not in self.broken:
            self.fault(place, "unknown", f"There is no {WORDS[model]} {reference}.")
        found: T | None = row
        return found


WORDS: dict[type[Model], str] = {
    Region: "region",
    Fleet: "fleet",
    CloudAccount: "cloud account",
    Stack: "stack",
    AddressPool: "pool of addresses",
    StaticIP: "static IP",
    LoadBalancer: "load balancer",
    Pool: "pool",
    Certificate: "certificate",
    Zone: "zone",
}
# What an operator may share with other accounts.
USABLE: dict[type[Model], Callable[[Account], Any]] = {Pool: usable_pools, Zone: usable_zones}


@contextmanager
def working(actor: Actor, *, reason: str = "", manager: str = "") -> Iterator[Work]:
    """A transaction that ends with the intent: raised generations of all that was touched, workers woken after commit.

    Raises Forbidden for viewers, Conflict when somebody made the same thing in the same moment.
    """
    actor.may_write()
    try:
        with transaction.atomic():
            work = Work(actor, reason=reason, manager=manager)
            yield work
            if work.touched:
                want_push(work.touched.values())
            if work.touched_stacks:
                want_stack_push(work.touched_stacks.values())
            if work.touched_zones:
                want_zone_push(work.touched_zones.values())
    except IntegrityError as error:
        raise Conflict(
            "Someone changed the same objects at the same time; read them again and decide again."
        ) from error
