"""The private directory of an attempt: made, handed to the driver, removed whatever happens."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from apps.core.concurrency.leases import Lease
from apps.drivers.infra.contract import Backend, Import, InfraError, Workspace
from apps.stacks.models import StackRun, StackSync
from apps.stacks.state import passwords
from apps.stacks.state.revision_store import Opened


def root() -> Path:
    """Where they stand: on this machine, for its user alone."""
    found: Path = settings.VAR_DIR / "terraform"
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    return found


def state_address(stack_id: int) -> str:
    """Where Terraform finds the state of a stack."""
    return f"{settings.STATE_URL}/state/{stack_id}"


@contextmanager
def open_workspace(
    lease: Lease[StackSync], run: StackRun, opened: Opened, password: str, imports: Iterable[Import] = ()
) -> Iterator[Workspace]:
    """The workspace of one attempt, whose plan takes `imports` over; what dead attempts left behind goes with it.

    An apply that outlives its worker still needs it: it is left to the next attempt then.
    """
    for old in root().glob(f"stack-{run.stack_id}-*"):
        shutil.rmtree(old, ignore_errors=True)
    directory = root() / f"stack-{run.stack_id}-{lease.attempt}"
    directory.mkdir(mode=0o700)
    backend = Backend(state_address(run.stack_id), passwords.USERNAME.format(run.pk), password)
    workspace = Workspace(
        directory=directory,
        backend=backend,
        document=opened.document,
        secrets=opened.secrets,
        credentials=run.stack.cloud_account.credentials,
        mark=StackSync.objects.values_list("mark", flat=True).get(pk=lease.pk),
        imports=tuple(imports),
    )
    try:
        yield workspace
    except InfraError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)
