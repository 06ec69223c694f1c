"""While Terraform works: the lease is kept, a person may cancel, events are written down."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from django import db
from django.db.models import Max

from apps.core.concurrency.leases import Lease, LeaseLost
from apps.core.events import publish
from apps.drivers.infra.contract import Progress
from apps.stacks.models import RunEvent, StackRun, StackSync
from apps.stacks.review.differences import Words

logger = logging.getLogger(__name__)
# A lease is renewed so often within its length, so that one renewal may fail.
RENEWALS = 5
MOST_EVENTS = 20_000


@dataclass(slots=True)
class Heartbeat:
    """What a driver asks whether it may go on: yes while the lease is ours and nobody cancels.

    A database that is away is forgiven until the lease would have ended. With `outlives` (an apply) it goes on although
    the lease is lost: to stop it would be to forget what the cloud is making. Nothing of it is written down then.
    """

    lease: Lease[StackSync]
    run: StackRun
    outlives: bool = False
    lost: bool = False
    cancelled: bool = False
    _renewed: float = field(default_factory=time.monotonic)

    def may_go_on(self) -> bool:
        """Renew what is due."""
        length = self.lease.length.total_seconds()
        if self.lost or time.monotonic() - self._renewed < length / RENEWALS:
            return self._answer()
        try:
            self.lease.renew()
            self.cancelled = StackRun.objects.filter(pk=self.run.pk).exclude(cancelled_by="").exists()
        except LeaseLost:
            self.lost = True
        except db.Error:
            logger.warning("the lease of run %s could not be renewed", self.run.pk)
            self.lost = time.monotonic() - self._renewed >= length
        else:
            self._renewed = time.monotonic()
        return self._answer()

    def _answer(self) -> bool:
        return not self.cancelled and (self.outlives or not self.lost)


@dataclass(slots=True)
class Journal:
    """Writes down what Terraform says of a run, with our names of things, and tells open pages."""

    run: StackRun
    words: Words
    _number: int = -1

    def heard(self, progress: Progress) -> None:
        """One event; one that cannot be written is lost, since Terraform does not wait."""
        try:
            self._write(progress)
        except db.Error as error:
            logger.warning("an event of run %s is lost: %s", self.run.pk, error)
        publish("stacks", id=self.run.stack_id, run=self.run.pk)

    def _write(self, progress: Progress) -> None:
        if self._number < 0:
            last = RunEvent.objects.filter(run=self.run).aggregate(last=Max("number"))["last"]
            self._number = last or 0
        if self._number >= MOST_EVENTS:
            return
        self._number += 1
        RunEvent.objects.create(
            run=self.run,
            number=self._number,
            kind=progress.kind[:10],
            address=progress.address[:400],
            label=self.words.label_of(progress.address)[:400] if progress.address else "",
            action=progress.action[:10],
            seconds=progress.seconds,
            message=self.words.said(progress.message)[:2000],
        )
