"""Who may write what: a role that the scopes of a token narrow."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.errors import Forbidden


@pytest.mark.parametrize("scopes", [None, {"pools:write"}, {"*:write"}, {"routes:read", "pools:write"}])
def test_who_has_the_scope_writes(scopes: set[str] | None) -> None:
    actor = Actor("ci", Account(kind="customer"), "editor", frozenset(scopes) if scopes else None)
    actor.may_write("pools")
    assert actor.has_scope("pools", "read")


@pytest.mark.parametrize("scopes", [{"pools:read"}, {"*:read"}, {"routes:write"}, {"routes:write", "*:read"}])
def test_who_has_it_not_is_refused_whatever_else_may_be_read_and_written(scopes: set[str]) -> None:
    with pytest.raises(Forbidden, match="pools:write"):
        Actor("ci", Account(kind="customer"), "editor", frozenset(scopes)).may_write("pools")
