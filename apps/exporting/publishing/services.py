"""Publishes the definitions of accounts in etcd, and again and again until etcd says what is wanted.

1. The sweep wakes a worker where something changed, where nobody looked for a while, or what failed is tried again.
2. A worker claims the sink with a lease, reads the definitions and what etcd has, and compares them (planning.py).
3. What somebody else changed is noted as a conflict, and nothing is written until an operator says so.
4. Digests of what is about to be written are stored. So a worker that dies, or an answer that is lost, leaves keys of
   which the next one knows that they are ours, whichever of them etcd has.
5. The keys are written by transactions that compare each key, `revision` and `publishing` with what was read. Where
   one of them was changed since, nothing is written and everything is read again: that also stops a worker that was
   only slow, as a lease does not.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Hashable, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit import services as audit
from apps.audit.chain import head
from apps.audit.models import Entry
from apps.core.clock import database_now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.fairness import Owners, in_turns
from apps.core.concurrency.leases import Lease, LeaseLost, take
from apps.core.errors import Conflict, NotFound
from apps.core.queue import enqueue, enqueue_on_commit
from apps.definitions.server_sources.etcd.client import Kept, Transaction, commit, read_kept
from apps.definitions.server_sources.registries import Unreadable
from apps.definitions.server_sources.watched import Failed
from apps.definitions.writing.kinds.hostnames import SEATS
from apps.exporting.models import Publication
from apps.exporting.publishing.objects import CHANGED_BY, MOST_OBJECTS, NotPublishable, objects_of
from apps.exporting.publishing.planning import FENCE, GONE, REVISION, Comparison, compare, digest, transactions
from apps.exporting.publishing.showing import conflict_of
from apps.exporting.publishing.sinks import Sink, sinks

PUBLISH_TASK = "apps.exporting.tasks.publish_definitions"
WAKE_EXPIRES_S = 10.0
LEASE = timedelta(seconds=30)
# How often etcd is looked at though nothing changed here, and while somebody else's change is in the way.
EVERY, IN_THE_WAY = timedelta(minutes=1), timedelta(seconds=15)
# After a failure: five seconds, ten, …, at most a minute.
SOONEST, LATEST = timedelta(seconds=5), timedelta(minutes=1)
ROUNDS = 4
# More keys than ours may be there: those that somebody else put among them are told, too.
MOST_KEYS = MOST_OBJECTS * 2
KEPT_FOR = timedelta(days=30)

logger = logging.getLogger(__name__)


def sweep() -> None:
    """Wake a worker where a sink is due."""
    if due_sinks():
        enqueue(PUBLISH_TASK, expires_s=WAKE_EXPIRES_S)


def publish_in_turns() -> int:
    """Publish where it is due, etcd by etcd, as long as there are seats; the number of sinks."""

    def choose(registries: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        due = due_sinks().items()
        return next(
            ((each.registry, pk) for pk, each in due if pk not in done and each.registry not in registries), None
        )

    return in_turns(SEATS, choose, publish)


def due_sinks() -> dict[int, Sink]:
    """Sinks that are to be looked at now, by their rows; none that somebody works on."""
    named, found = _named(), dict[int, Sink]()
    if not named:
        return found
    instant = database_now()
    rows = {(row.registry, row.prefix): row for row in Publication.objects.defer("known")}
    for sink in named:
        row = rows.get((sink.registry, sink.prefix))
        if row is None:
            row, _ = Publication.objects.get_or_create(registry=sink.registry, prefix=sink.prefix)
        if _due(sink, row, instant):
            found[row.pk] = sink
    return found


def _named() -> list[Sink]:
    """A file that cannot be read names none."""
    try:
        return [each for each in sinks() if not each.wrong]
    except Unreadable:
        return []


def _due(sink: Sink, row: Publication, instant: datetime) -> bool:
    if row.claimed_until is not None and row.claimed_until >= instant:
        return False
    if row.next_at is None or row.next_at <= instant or row.account != sink.account:
        return True
    # While etcd is away or somebody is in the way, a change waits for the next try.
    entries = Entry.objects.filter(account__name=sink.account, position__gt=row.position)
    return not row.error and not row.conflicts and entries.filter(object_kind__in=CHANGED_BY).exists()


def publish(publication_id: int) -> bool:
    """Bring a sink to what the definitions say; False where somebody else works on it, or nobody names it any more."""
    row = Publication.objects.only("registry", "prefix").get(pk=publication_id)
    sink = next((each for each in _named() if (each.registry, each.prefix) == (row.registry, row.prefix)), None)
    lease = take(Publication, LEASE, pk=publication_id) if sink else None
    if sink is None or lease is None:
        return False
    try:
        _try(sink, lease)
    except LeaseLost as lost:
        logger.warning("%s; somebody else goes on", lost)
    finally:
        lease.release()
    return True


def _try(sink: Sink, lease: Lease[Publication]) -> None:
    try:
        if not any(_publish_once(sink, lease) for _ in range(ROUNDS)):
            raise Failed("Somebody else writes the keys again and again.")
    except LeaseLost:
        raise
    except (Failed, NotPublishable) as error:
        _failed(sink, lease, str(error))
    except Exception:
        logger.exception("%s could not be published", sink)
        _failed(sink, lease, "The definitions cannot be read. The log of the worker says why.")


def _failed(sink: Sink, lease: Lease[Publication], error: str) -> None:
    with transaction.atomic():
        row = lease.lock()
        row.account, row.error, row.failures = sink.account, error[:400], row.failures + 1
        _rest(row, pause_after(row.failures, first=SOONEST, longest=LATEST))
        row.save(update_fields=("account", "error", "failures", "tried_at", "next_at"))


def _publish_once(sink: Sink, lease: Lease[Publication]) -> bool:
    """Read, compare, write; False where a key was changed in between. Raises Failed, NotPublishable, LeaseLost."""
    position = head().position
    account = Account.objects.filter(name=sink.account).first()
    if account is None:
        raise NotPublishable(f"There is no account {sink.account}. What was published stays until the file is changed.")
    wanted = objects_of(account)
    prefix = len(sink.prefix)
    found = {key[prefix:]: kept for key, kept in read_kept(sink.etcd, sink.prefix, MOST_KEYS).items()}
    row = Publication.objects.get(pk=lease.pk)
    differs = compare(wanted, found, row.known, row.overwrite)
    if differs.due and not differs.conflicts:
        row.revision = max(row.revision, _said(found)) + 1
        said = {"revision": row.revision, "account": sink.account, "objects": len(wanted)}
        texts = json.dumps(said), json.dumps({"revision": row.revision})
        _remember(lease, differs, *texts)
        if not _written(sink, lease, transactions(differs, found, *texts)):
            return False
        row.known = {key: [digest(value)] for key, value in (wanted | {REVISION: texts[0]}).items()}
        row.published_at, row.objects_count = database_now(), len(wanted)
    row.account, row.position, row.conflicts = sink.account, position, [asdict(each) for each in differs.conflicts]
    _note(row, lease)
    return True


def _said(found: Mapping[str, Kept]) -> int:
    """The number that the key `revision` has, so that numbers rise though our database may have been put back."""
    try:
        return max(int(json.loads(found[REVISION].value)["revision"]), 0)
    except (KeyError, TypeError, ValueError, RecursionError):
        return 0


def _remember(lease: Lease[Publication], differs: Comparison, revision: str, fence: str) -> None:
    """Before anything is written: what may be there from now on, beside what may be there already."""
    writes = {key: digest(value) for key, value in differs.puts.items()} | dict.fromkeys(differs.deletes, GONE)
    writes |= {REVISION: digest(revision), FENCE: digest(fence)}
    with transaction.atomic():
        row = lease.lock()
        for key, said in writes.items():
            row.known[key] = list(dict.fromkeys([*row.known.get(key, [GONE]), said]))
        row.save(update_fields=("known",))


def _written(sink: Sink, lease: Lease[Publication], wanted: list[Transaction]) -> bool:
    """Whether all of them were, in their order. Raises Failed, LeaseLost."""
    fence = 0
    for each in wanted:
        lease.renew()
        step = replace(each, as_read={**each.as_read, FENCE: fence}) if fence else each
        revision = commit(sink.etcd, _below(sink.prefix, step))
        if revision is None:
            return False
        fence = fence or revision
    return True


def _below(prefix: str, step: Transaction) -> Transaction:
    as_read = {prefix + key: revision for key, revision in step.as_read.items()}
    puts = {prefix + key: value for key, value in step.puts.items()}
    return Transaction(as_read, puts, [prefix + key for key in step.deletes])


def _note(row: Publication, lease: Lease[Publication]) -> None:
    """How far it came. What an operator gave up to us is given up until it is published."""
    row.error, row.failures, row.looked_at = "", 0, database_now()
    _rest(row, IN_THE_WAY if row.conflicts else EVERY)
    fields = ["account", "position", "conflicts", "error", "failures", "looked_at", "tried_at", "next_at"]
    if not row.conflicts:
        row.overwrite = {}
        fields += ["overwrite", "known", "revision", "published_at", "objects_count"]
    with transaction.atomic():
        lease.lock()
        row.save(update_fields=fields)


def _rest(row: Publication, pause: timedelta) -> None:
    row.tried_at = database_now()
    row.next_at = row.tried_at + pause * random.uniform(0.9, 1.1)  # noqa: S311 - nothing secret


def overwrite(*, actor: Actor, publication_id: int, conflict: str, reason: str = "") -> Publication:
    """Give up to us what stands in the way, as it was seen: what somebody changes after that is a conflict again.

    `conflict` is what `conflict_of` says of it. Raises Forbidden, NotFound; Conflict where other keys are in the way.
    """
    actor.may_write("accounts")
    actor.must_operate("what is published in etcd")
    with transaction.atomic():
        row = Publication.objects.select_for_update().filter(pk=publication_id).first()
        if row is None:
            raise NotFound("There is no such publication.")
        if not row.conflicts:
            raise Conflict("No key is in the way.")
        if conflict_of(row.conflicts) != conflict:
            raise Conflict("Other keys are in the way by now. Look at them before you overwrite them.")
        given_up = {each["key"]: each["revision"] for each in row.conflicts}
        row.overwrite, row.next_at = row.overwrite | given_up, None
        row.save(update_fields=("overwrite", "next_at"))
        audit.record(
            actor=actor,
            action="overwrite",
            kind="Publication",
            object_id=row.pk,
            label=str(row),
            after={"keys": given_up},
            reason=reason,
        )
        enqueue_on_commit(PUBLISH_TASK)
    return row


def prune(moment: datetime) -> None:
    """Forget sinks that the file has not named for a month."""
    try:
        named = {(each.registry, each.prefix) for each in sinks()}
    except Unreadable:
        return
    for row in Publication.objects.filter(tried_at__lt=moment - KEPT_FOR).only("registry", "prefix"):
        if (row.registry, row.prefix) not in named:
            row.delete()
