"""On whose word: an automatic limit is set for whoever wrote the test's policy, while they still may."""

from __future__ import annotations

from django.db.models import Q

from apps.accounts.actors import Actor, actor_of_token, platform_actor
from apps.accounts.models import Account, ApiToken, Membership
from apps.audit.models import Entry
from apps.capacity.models import Run
from apps.core.clock import now
from apps.core.errors import Forbidden

_GONE = (
    "the person who set the policy of its test may no longer change limits; someone who may should save the test again."
)


def actor_behind(run: Run) -> Actor:
    """The actor who last saved the run's test, as far as they may write now. Raises Forbidden with the reason."""
    entries = Entry.objects.filter(object_kind="CapacityTest", object_id=run.test_id, action__in=("create", "update"))
    entry = entries.select_related("account").order_by("-id").first() if run.test_id else None
    if entry is None:
        raise Forbidden("its test was deleted, so there is no record of who set the policy.")
    actor = _of_token(entry.token) if entry.token else _of_name(entry.actor, run.account)
    if actor is None:
        raise Forbidden(_GONE)
    actor.must_be_active()
    actor.may_write("pools")
    return actor


def _of_token(key_id: str) -> Actor | None:
    rows = ApiToken.objects.select_related("account").filter(key_id=key_id, revoked_at=None)
    token = rows.filter(Q(expires_at=None) | Q(expires_at__gt=now())).first()
    return actor_of_token(token) if token else None


def _of_name(name: str, account: Account) -> Actor | None:
    """A person of the account, else an operator; the platform's command line speaks for the account alone."""
    people = Membership.objects.select_related("account").filter(user__username=name, user__is_active=True)
    found = people.filter(account=account).first() or people.filter(account__kind=Account.Kind.OPERATOR).first()
    if found is not None:
        return Actor(name, found.account, found.role, user_id=found.user_id)
    return Actor(name, account, Membership.Role.EDITOR) if name == platform_actor().name else None
