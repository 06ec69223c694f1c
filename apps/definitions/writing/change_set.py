"""Inside a write: what one transaction found wrong, looked up, affected, and has still to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.db.models import Model

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname, Membership
from apps.core.errors import FieldError, Invalid
from apps.definitions.affected_targets import stacks_of, stacks_of_hostname, stacks_of_load_balancers, zones_of
from apps.definitions.models import Pool, Zone
from apps.definitions.reading.describing import Document
from apps.definitions.selectors import fleets_of, fleets_of_hostname, fleets_of_load_balancers
from apps.definitions.sharing import lock_shared, usable_pools, usable_zones
from apps.definitions.writing.intent import request_zone_push
from apps.definitions.writing.rules.managed import said
from apps.fleet.models import Fleet, Stack
from apps.fleet.selectors import overflow_orders
from apps.fleet.services import request_push, request_stack_push

T = TypeVar("T", bound=Model)


@dataclass(slots=True)
class FieldErrors:
    """What is wrong so far.

    `pointer` is where the object at hand stood in what was sent; every error is noted below it. `rejected` are the
    objects of the same document that were rejected, so that those who name them are not blamed as well.
    """

    pointer: str = ""
    rejected: set[tuple[str, str]] = field(default_factory=set)
    _noted: list[FieldError] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self._noted)

    def add(self, pointer: str, code: str, detail: str) -> None:
        """Note an error at `pointer`, a pointer within the object at hand."""
        self._noted.append(FieldError(self.pointer + pointer, code, detail))

    def raise_any(self) -> None:
        """Raise Invalid if anything is wrong."""
        if self._noted:
            raise Invalid(self.drain())

    def drain(self) -> list[FieldError]:
        """The errors so far, handed over."""
        drained, self._noted = self._noted, []
        return drained


@dataclass(slots=True)
class Lookups:
    """What was looked up, once each; `versions` are those in which rows were met first.

    `new_hostnames` are those of a document's new routes, `unclaimed` which of them nobody had claimed; None until the
    first of them is claimed. `named` are rows that objects name, each with the error for who named it first, should it
    be gone in the end (rules/naming.py).
    """

    versions: dict[tuple[str, int, str], int] = field(default_factory=dict)
    new_hostnames: list[str] = field(default_factory=list)
    unclaimed: set[str] | None = None
    named: defaultdict[type[Model], dict[int, FieldError]] = field(default_factory=lambda: defaultdict(dict))
    _found: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def lookup(self, key: tuple[Any, ...], look_up: Callable[[], Any]) -> Any:
        """What `look_up` answered the first time that the key was asked for."""
        if key not in self._found:
            self._found[key] = look_up()
            self.track_version(self._found[key])
        return self._found[key]

    def track_version(self, row: Any) -> None:
        """Note the version of a row that this transaction builds on; other values have none."""
        if isinstance(row, Model) and hasattr(row, "version") and hasattr(row, "name"):
            key = (type(row).__name__, getattr(row, "account_id", 0), row.name)
            self.versions.setdefault(key, row.version)

    def remember(self, row: Model | None, *key: Any) -> None:
        """Answer `lookup` with this row."""
        self._found[key] = row

    def forget(self, *key: Any) -> None:
        """Look up again next time: an object with this key was just made or changed."""
        self._found.pop(key, None)


@dataclass(slots=True)
class Affected:
    """What the change reaches: what must be pushed to, and whose routes came, went or changed.

    `touched_routes` are load balancers and hostnames, `released_hostnames` claims that a route has left.
    """

    fleets: dict[int, Fleet] = field(default_factory=dict)
    stacks: dict[int, Stack] = field(default_factory=dict)
    zones: dict[int, Zone] = field(default_factory=dict)
    touched_routes: set[tuple[int, str]] = field(default_factory=set)
    released_hostnames: set[int] = field(default_factory=set)
    _load_balancers: set[int] = field(default_factory=set)
    _orders: Any = None

    def add_fleets(self, fleets: Iterable[Fleet]) -> None:
        """These fleets must be pushed to once the transaction is committed."""
        self.fleets.update((fleet.pk, fleet) for fleet in fleets)

    def add_stacks(self, stacks: Iterable[Stack]) -> None:
        """As `add_fleets`, for stacks."""
        self.stacks.update((stack.pk, stack) for stack in stacks)

    def add_zones(self, zones: Iterable[Zone]) -> None:
        """As `add_fleets`, for DNS zones."""
        self.zones.update((zone.pk, zone) for zone in zones)

    def add_all_fleets(self) -> None:
        """As `add_fleets`, for every fleet: regions and distances concern all of them."""
        self.add_fleets(Fleet.objects.all())

    def add_hostname(self, claim: Hostname) -> None:
        """What serves the name, or names under it when it is a wildcard."""
        self.add_fleets(fleets_of_hostname(claim))
        self.add_stacks(stacks_of_hostname(claim))

    def add_load_balancer(self, pk: int) -> None:
        """The fleets and stacks of a load balancer, looked up once."""
        if pk not in self._load_balancers:
            self._load_balancers.add(pk)
            self.add_fleets(fleets_of_load_balancers([pk]))
            self.add_stacks(stacks_of_load_balancers([pk]))

    def watch_orders(self) -> None:
        """Remember which regions are nearest to each now."""
        if self._orders is None:
            self._orders = overflow_orders()

    def compare_orders(self) -> None:
        """In the end: when other regions than before are nearest to any, everything must be pushed to."""
        before, self._orders = self._orders, None
        if before is not None and before != overflow_orders():
            self.add_all_fleets()
            self.add_stacks(Stack.objects.all())

    def request_push(self) -> None:
        """Raise the desired generation of all that must be pushed to; workers are woken after commit."""
        if self.fleets:
            request_push(self.fleets.values())
        if self.stacks:
            request_stack_push(self.stacks.values())
        if self.zones:
            request_zone_push(self.zones.values())


def actor_of_schedule(account: Account, name: str) -> Actor:
    """Who does what a schedule says: an editor of its account, whoever wrote it."""
    return Actor(f"schedule {name}"[:150], account, Membership.Role.EDITOR)


@dataclass(frozen=True, slots=True)
class ScheduledChange:
    """A change that a schedule makes: tried before the schedule is stored, with its `pointer`, and made when it runs.

    `manager` is whose pipeline made the schedule, blank for none.
    """

    pointer: str
    owner: Account
    schedule: str
    object: dict[str, Any]
    manager: str = ""


@dataclass(slots=True)
class Deferred:
    """What waits until every object of a document is stored, and what the rules of the end look at.

    `expected` are the objects that the document names; `saved` says where each saved object stood in what was sent, by
    kind, and `before` what its document was, None for a new one; `scheduled_changes` are tried in the end; `emptied`
    (pointer, row, what it had), `pruned_routes` (by load balancer) and `stopped` (pointer, what confirms it, sentence)
    are for rules/emptying.py; `quota_before` is what accounts had before, and `growing` what they get (pointers), for
    rules/quotas.py.
    """

    expected: set[tuple[str, str]] = field(default_factory=set)
    saved: defaultdict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    before: defaultdict[str, dict[int, Document | None]] = field(default_factory=lambda: defaultdict(dict))
    scheduled_changes: list[ScheduledChange] = field(default_factory=list)
    emptied: list[tuple[str, Any, list[str]]] = field(default_factory=list)
    pruned_routes: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    stopped: list[tuple[str, str, str]] = field(default_factory=list)
    quota_before: dict[tuple[str, int], tuple[Account, int]] = field(default_factory=dict)
    growing: defaultdict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    _actions: list[Callable[[], None]] = field(default_factory=list)

    def add(self, action: Callable[[], None]) -> None:
        """Do this in the end."""
        self._actions.append(action)

    def run(self) -> None:
        """Do what waited."""
        for action in self._actions:
            action()
        self._actions.clear()


class ChangeSet:
    """One transaction: who changes something and why, under which manager, and what came of it so far.

    `break_glass` says that somebody changes objects of a pipeline on purpose. `kept` says of fields that a document
    (`of_document`) does not own that they stay (rules/field_owners.py), `losses` what somebody confirmed (emptying.py).
    """

    def __init__(self, actor: Actor, *, reason: str = "", manager: str = "") -> None:
        self.actor = actor
        self.reason = reason
        self.manager = manager or said().manager
        self.break_glass = said().break_glass
        self.take_over = said().take_over
        self.of_document = False
        self.kept: dict[str, str] = {}
        self.losses: list[str] = []
        self.field_errors = FieldErrors()
        self.lookups = Lookups()
        self.affected = Affected()
        self.deferred = Deferred()

    def mark_affected(self, row: Model) -> None:
        """Push to every fleet, stack and zone that a change of the row affects."""
        self.affected.add_fleets(fleets_of(row))
        self.affected.add_stacks(stacks_of(row))
        self.affected.add_zones(zones_of(row))

    def add_error(self, pointer: str, code: str, detail: str) -> None:
        """Note an error at `pointer`, a pointer within the object at hand."""
        self.field_errors.add(pointer, code, detail)

    def lookup(self, key: tuple[Any, ...], look_up: Callable[[], Any]) -> Any:
        """What `look_up` answered the first time that the key was asked for."""
        return self.lookups.lookup(key, look_up)

    def account(self, name: str | None) -> Account:
        """The owner of the object at hand. A customer's objects belong to its own account, whatever else exists."""
        own = self.actor.account
        if name is None or name == own.name:
            return own
        found: Account | None = None
        if self.actor.is_operator:
            found = self.lookup(("Account", name), lambda: Account.objects.filter(name=name).first())
            if found is None and ("Account", name) not in self.field_errors.rejected:
                self.add_error("/account", "unknown", f"There is no account {name}.")
        else:
            self.add_error("/account", "account", f"Leave the account out: your objects belong to {own.name}.")
        if found is None:
            raise Invalid(self.field_errors.drain())
        return found

    def named(self, model: type[T], name: str | None, pointer: str) -> T | None:
        """A region, fleet, stack, static IP or load balancer by name; None and an error when there is none."""
        if name is None:
            return None
        kind = model.__name__
        rows = model._default_manager.filter(name=name).order_by("pk")
        row: T | None = self.lookup((kind, name), rows.first)
        return self._note(model, row, name, pointer, name)

    def owned(self, model: type[T], owner: Account, reference: str | None, pointer: str) -> T | None:
        """A pool, zone, certificate or policy by reference, as `owner` sees it; None and an error when there is none.

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
            row = self.lookup(("shared", model.__name__, owner.pk, reference), shared.first)
        elif account == owner.name or self.actor.is_operator:
            rows = model._default_manager.select_related("account").filter(account__name=account, name=name)
            row = self.lookup((model.__name__, account, name), rows.first)
        return self._note(model, row, reference, pointer, f"{account}/{name}")

    def _note(self, model: type[T], row: T | None, name: str, pointer: str, identity: str) -> T | None:
        """An error where there is no such row; else remember that it must be there in the end as well."""
        error = FieldError(pointer, "unknown", f"There is no {model._meta.verbose_name} {name}.")
        if row is not None:
            error = replace(error, pointer=self.field_errors.pointer + pointer)
            self.lookups.named[model].setdefault(row.pk, error)
        elif (model.__name__, identity) not in self.field_errors.rejected:
            self.add_error(error.pointer, error.code, error.detail)
        return row


# What an operator may share with other accounts.
USABLE: dict[type[Model], Callable[[Account], Any]] = {Pool: usable_pools, Zone: usable_zones}
