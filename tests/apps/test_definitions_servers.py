"""What a pool says of its servers is stored as it was sent, frozen for nodes, and refused where it does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import Connections, PersistBy, Retries, RetryOn, Verify
from apps.core.errors import Conflict, Invalid
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import Certificate
from apps.definitions.models import Pool as PoolRow
from apps.definitions.reading.describing import describe
from apps.definitions.services import delete_object, save_object
from apps.fleet.models import Fleet
from tests.apps.test_definitions_services import pem_pair
from tests.hostile.authority import AUTHORITY

Spec = dict[str, Any]
SAID: Spec = {
    "server_tls": {"verify": "ca", "ca": AUTHORITY, "server_name": "shop.internal.example"},
    "persistence": {"by": "header", "header": "X-User"},
    "connections": {"max_per_server": 20},
    "retries": {"attempts": 1, "on": ["timeout"]},
    "host_header": "shop.internal.example",
    "health_check": {"path": "/up", "headers": {"X-A": "v"}, "expect_statuses": ["200-299"]},
}


def saved(actor: Actor, **fields: Any) -> PoolRow:
    """The shop with these fields."""
    spec = describe(PoolRow.objects.get(name="shop"))
    row: PoolRow = save_object(actor=actor, kind="Pool", name="shop", spec=spec | fields)
    return PoolRow.objects.get(pk=row.pk)


def frozen(fleet: str = "us-central1") -> Pool:
    """The shop as nodes get it."""
    snapshot = freeze(Fleet.objects.get(name=fleet).pk)[0]
    return next(pool for pool in snapshot.pools if pool.label == "acme/shop")


def pointers(caught: pytest.ExceptionInfo[Invalid]) -> list[str]:
    return [error.pointer for error in caught.value.field_errors]


def test_what_is_said_of_servers_is_stored_shown_and_frozen(tutorial_env: Actor, acme: Actor) -> None:
    shown = describe(saved(acme, **SAID))
    for name, said in SAID.items():
        assert shown[name] == said if isinstance(said, str) else shown[name].items() >= said.items()
    pool = frozen()
    assert pool.server_tls is not None
    assert (pool.server_tls.verify, pool.server_tls.ca) == (Verify.CA, AUTHORITY)
    assert pool.persistence is not None
    assert pool.persistence.by is PersistBy.HEADER
    assert pool.connections == Connections(20)
    assert pool.retries == Retries(1, (RetryOn.TIMEOUT,))
    assert pool.health_check is not None
    assert (pool.health_check.headers, pool.health_check.expect_statuses) == ((("X-A", "v"),), ("200-299",))
    assert describe(saved(acme)) == shown
    gone = describe(saved(acme, **dict.fromkeys(SAID)))
    assert (gone["server_tls"], gone["persistence"], gone["host_header"]) == (None, None, "")
    assert frozen().server_tls is None


def test_who_says_no_word_of_verification_has_servers_verified(tutorial_env: Actor, acme: Actor) -> None:
    saved(acme, server_tls={})
    tls = frozen().server_tls
    assert tls is not None
    assert tls.verify is Verify.SYSTEM


def test_the_certificate_that_servers_are_shown_is_the_accounts_own_and_stays(
    tutorial_env: Actor, acme: Actor, globex: Actor
) -> None:
    chain, key = pem_pair("shop.acme.example")
    tls = {"client_certificate": "client"}
    save_object(actor=globex, kind="Certificate", name="client", spec={"chain": chain, "key": key})
    with pytest.raises(Invalid) as caught:
        saved(acme, server_tls=tls)
    assert pointers(caught) == ["/spec/server_tls/client_certificate"]
    save_object(actor=acme, kind="Certificate", name="client", spec={"chain": chain, "key": key})
    saved(acme, server_tls=tls)
    own = Certificate.objects.get(name="client", account=acme.account)
    snapshot = freeze(Fleet.objects.get(name="us-central1").pk)[0]
    shown = frozen().server_tls
    assert shown is not None
    assert shown.client_certificate_id == f"crt-{own.pk}"
    assert [each.id for each in snapshot.certificates] == [f"crt-{own.pk}"]
    with pytest.raises(Conflict, match="pool shop"):
        delete_object(actor=acme, kind="Certificate", name="client")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"server_tls": {"verify": "ca"}}, "/spec/server_tls/ca"),
        ({"server_tls": {"ca": AUTHORITY}}, "/spec/server_tls/ca"),
        ({"server_tls": {"verify": "ca", "ca": AUTHORITY.replace("MII", "AAA")}}, "/spec/server_tls/ca"),
        ({"persistence": {"by": "header"}}, "/spec/persistence/header"),
        ({"persistence": {"by": "source", "overflow": "keeps"}}, "/spec/persistence/overflow"),
        ({"persistence": {"same_site": "none"}}, "/spec/persistence/same_site"),
        ({"health_check": {"kind": "redis"}}, "/spec/health_check/kind"),
        ({"health_check": {"kind": "grpc"}}, "/spec/health_check/kind"),
        ({"health_check": {"path": "/up", "body": "x"}}, "/spec/health_check/body"),
        ({"health_check": None, "outlier_ejection": {}}, "/spec/outlier_ejection"),
        ({"connections": {"max_per_server": 2, "min_per_server": 3}}, "/spec/connections/min_per_server"),
        ({"overflow": {"mode": "listed"}}, "/spec/overflow/order"),
        ({"overflow": {"mode": "never", "order": ["us-central1"]}}, "/spec/overflow/order"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(
    tutorial_env: Actor, acme: Actor, fields: Spec, pointer: str
) -> None:
    with pytest.raises(Invalid) as caught:
        saved(acme, **fields)
    assert pointers(caught) == [pointer]


@pytest.mark.parametrize(
    ("overflow", "others"),
    [
        ({"mode": "anywhere"}, 1),
        ({"mode": "listed", "order": ["europe-west1"]}, 1),
        ({"mode": "listed", "order": ["us-central1"]}, 0),
        ({"mode": "never"}, 0),
    ],
)
def test_overflow_goes_only_where_the_pool_lets_it(
    tutorial_env: Actor, acme: Actor, overflow: Spec, others: int
) -> None:
    saved(acme, overflow=overflow)
    assert len(frozen().elsewhere) == others


@pytest.mark.parametrize(
    ("column", "value"),
    [("server_tls", {"verify": "maybe"}), ("persistence", [1]), ("retries", {"so": 1}), ("http_version", "9")],
)
def test_a_column_that_says_nothing_leaves_the_pool_out_and_no_other(
    tutorial_env: Actor, acme: Actor, column: str, value: Any
) -> None:
    PoolRow.objects.filter(name="shop").update(**{column: value})
    snapshot = freeze(Fleet.objects.get(name="us-central1").pk)[0]
    assert [each.label for each in snapshot.unreadable] == ["acme/shop"]
    assert "acme/shop" not in [pool.label for pool in snapshot.pools]
