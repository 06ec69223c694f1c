"""Inside a write: what an object names is there in the end as well, whoever deletes at the same time.

Foreign keys hold what they point to; a network list in `access`, a region in an overflow order or a fleet in a schedule
is a name in JSON, which nothing holds. So whoever names keeps what is named, and whoever deletes holds the row before
asking who uses it (objects.py): one of the two waits for the other, and sees what it has done.
"""

from __future__ import annotations

from apps.core.concurrency.locks import keep_rows
from apps.core.errors import Invalid
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.registry import KINDS


def reject_gone(changes: ChangeSet) -> None:
    """In the end: Invalid for what was named and is gone by now; the rest is kept until the commit.

    What this transaction saved is its own to keep. Users come before what they use, as `prune` deletes them, so that
    two transactions do not wait for each other.
    """
    named, saved = changes.lookups.named, changes.deferred.saved
    models = [entry.model for kind, entry in reversed(KINDS.items()) if entry.model in named]
    wanted = {model: named[model].keys() - saved[model.__name__].keys() for model in models}
    if gone := keep_rows(wanted):
        raise Invalid([named[model][pk] for model, pk in sorted(gone, key=lambda each: models.index(each[0]))])
